import { seemsToLack } from './name-hint';

describe('seemsToLack', () => {
  it.each([
    ['a Tin Robot', 'tin robot'],
    ['a tin-robot in the rain', 'tin robot'],
    ['a tin\n robot', 'tin robot'],
    ['a cafe\u0301', 'caf\u00e9'],
  ])('is false for "%s", which the service accepts for "%s"', (prompt, name) => {
    expect(seemsToLack(prompt, name)).toBe(false);
  });

  it('is true without the name', () => {
    expect(seemsToLack('a tin star', 'tin robot')).toBe(true);
  });
});
