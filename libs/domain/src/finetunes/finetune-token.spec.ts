import { limits } from '../common/limits';
import { writeToken } from './finetune-token';

const robot = { token: 'zwx', name: 'robot' };

describe(writeToken.name, () => {
  it.each([
    ['a robot in the rain', 'a zwx robot in the rain'],
    ['Robot', 'zwx Robot'],
    ['a zwx robot', 'a zwx robot'],
    ['A ZWX Robot', 'A ZWX Robot'],
    ['robot zwx', 'robot zwx'],
    ['a robot beside a zwx robot', 'a zwx robot beside a zwx robot'],
    ['zwx, the robot', 'zwx, the zwx robot'],
    ['(robot:1.3)', '(zwx robot:1.3)'],
    ['robots and a robot', 'robots and a zwx robot'],
  ])('draws "%s" as "%s"', (text, drawn) => {
    expect(writeToken(text, robot)).toBe(drawn);
  });

  it('changes nothing the second time', () => {
    const drawn = writeToken('a robot, robot, robot', robot);
    expect(writeToken(drawn, robot)).toBe(drawn);
  });

  it('writes the first token at any length, and no further ones than fit', () => {
    const long = 'robot '.repeat(5330);
    const drawn = writeToken(long, robot);
    expect([drawn.startsWith('zwx robot zwx robot '), drawn.length]).toEqual([true, limits.promptLength]);
    const full = `robot${' x'.repeat(15_996)} robot`;
    expect(writeToken(full, robot)).toBe(`zwx ${full}`);
  });

  it('leaves a name that has the token in it', () => {
    expect(writeToken('a zwx robot', { token: 'zwx', name: 'zwx robot' })).toBe('a zwx robot');
  });

  it('writes a token with replacement patterns as it is', () => {
    expect(writeToken('a robot', { token: '$&$1', name: 'robot' })).toBe('a $&$1 robot');
  });
});
