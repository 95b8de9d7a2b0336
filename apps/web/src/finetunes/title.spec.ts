import { titlesOf } from './title';

const robot = (id: string, day: number) => ({ id, name: 'robot', created_at: `2026-11-${day}T09:21:33.123Z` });
const valuesOf = (titles: ReadonlyMap<string, string>): string[] => [...titles.values()];

describe('the title of a Fine-Tune', () => {
  it('is its own, or else its name', () => {
    expect(valuesOf(titlesOf([robot('1', 20), { ...robot('2', 20), title: 'Marvin' }]))).toEqual(['robot', 'Marvin']);
  });

  it('has the time of those that are called alike, which tells them apart', () => {
    const [first, second] = valuesOf(titlesOf([robot('1', 20), robot('2', 21)]));
    expect(first).toMatch(/^robot \(.*2026.*\)$/);
    expect(second).not.toBe(first);
  });

  it('has the id too of those that were made in the same second', () => {
    const [first, second, third] = valuesOf(titlesOf([robot('1', 20), robot('2', 20), robot('3', 21)]));
    expect(first).toMatch(/ \(1\)$/);
    expect(second).toMatch(/ \(2\)$/);
    expect(third).toMatch(/^robot \([^()]+\)$/);
  });
});
