import { titleAmong } from './title';

const robot = (id: string, day: number) => ({ id, name: 'robot', created_at: `2026-11-${day}T09:21:33.123Z` });

describe('the title of a Fine-Tune', () => {
  it('is its own, or else its name', () => {
    const [named, titled] = [robot('1', 20), { ...robot('2', 20), title: 'Marvin' }];
    expect([named, titled].map((each) => titleAmong(each, [named, titled]))).toEqual(['robot', 'Marvin']);
  });

  it('has the time of those that are called alike, which tells them apart', () => {
    const alike = [robot('1', 20), robot('2', 21)];
    const [first, second] = alike.map((each) => titleAmong(each, alike));
    expect(first).toMatch(/^robot \(.+\)$/);
    expect(second).not.toBe(first);
  });
});
