import { jsonSizeProblem } from './json-size';

describe(jsonSizeProblem.name, () => {
  const told = (json: string, most: { levels: number; values: number }): number =>
    Number(/got (\d+)/.exec(jsonSizeProblem(Buffer.from(json), most) ?? '')?.[1]);

  it.each([
    ['[]', 1, 1],
    ['[ \n]', 1, 1],
    ['{}', 1, 1],
    ['[0]', 1, 2],
    ['[[],[],{}]', 2, 4],
    ['{"a":{"b":[0]},"c":[]}', 3, 5],
    [String.raw`["\"[[[,", "\\", [0]]`, 2, 5],
    ['{"[{,":"]}"}', 1, 2],
    ['["［｛", ["漢"]]', 2, 4],
  ])('%s has %i levels and %i values', (json, levels, values) => {
    expect(told(json, { levels: -1, values: 100 })).toBe(levels);
    expect(told(json, { levels: 100, values: 0 })).toBe(values);
    expect(jsonSizeProblem(Buffer.from(json), { levels, values })).toBeUndefined();
  });

  it('leaves what is never closed to the parser', () => {
    expect(jsonSizeProblem(Buffer.from('['.repeat(10_000)), { levels: 10, values: 10 })).toBeUndefined();
  });
});
