import { isDeeperThan } from './json-levels';

describe(isDeeperThan.name, () => {
  const levels = (json: string): number => {
    let most = 0;
    while (isDeeperThan(most, Buffer.from(json))) most++;
    return most;
  };

  it.each([
    ['"a"', 0],
    ['[]', 1],
    ['{}', 1],
    ['[[],[],{}]', 2],
    ['{"a":{"b":[0]},"c":[]}', 3],
    ['"[[[["', 0],
    [String.raw`["\"[[[", "\\", [0]]`, 2],
    ['{"[{":"]}"}', 1],
    ['["［｛", ["漢"]]', 2],
  ])('%s has %i', (json, expected) => {
    expect(levels(json)).toBe(expected);
  });
});
