import * as fc from 'fast-check';
import { characterCount, hasLongMarks, metadataProblem } from './text-rules';

describe(characterCount.name, () => {
  it('counts a surrogate pair as one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => expect(characterCount(text)).toBe([...text].length)),
    );
    expect(characterCount('\ud835\ud835\udcb3\udcb3')).toBe(3);
  });
});

describe(hasLongMarks.name, () => {
  it.each([
    ['30 in a row', `e${'\u0301'.repeat(30)}e\u0301`, false],
    ['31 in a row', `e${'\u0301'.repeat(31)}`, true],
    ['31 without a letter before them', '\u0301'.repeat(31), true],
    ['31 of different kinds', `e${'\u0301\u0316\u20dd'.repeat(10)}\u0903`, true],
    ['30 of two units each', `e${'\u{1d165}'.repeat(30)}`, false],
    ['31 of two units each', `e${'\u{1d165}'.repeat(31)}`, true],
    ['many, each behind a letter', 'e\u0301'.repeat(100), false],
  ])('counts %s', (_, text, isLong) => {
    expect(hasLongMarks(text)).toBe(isLong);
  });
});

describe(metadataProblem.name, () => {
  const bounds = { bytes: 100, depth: 3 };

  it.each<[string, unknown, string | undefined]>([
    ['exactly the maximum', { a: 'x'.repeat(92) }, undefined],
    ['one byte too many', { a: 'x'.repeat(93) }, 'must be at most 100 bytes of JSON'],
    ['multi-byte characters', { a: 'é'.repeat(47) }, 'must be at most 100 bytes of JSON'],
    ['many small members', { a: Array(300_000).fill(0) }, 'must be at most 100 bytes of JSON'],
    ['exactly as many empty arrays as fit', { a: Array(31).fill([]) }, undefined],
    ['one empty array too many', { a: Array(32).fill([]) }, 'must be at most 100 bytes of JSON'],
    ['too many levels', { a: { b: { c: {} } } }, 'must have at most 3 levels'],
    ['an array', [[[]]], undefined],
    ['too many levels of arrays', [[[[]]]], 'must have at most 3 levels'],
    ['exactly as many digits as fit', Array(49).fill(1), undefined],
    ['one digit too many', Array(50).fill(1), 'must be at most 100 bytes of JSON'],
    ['a text of exactly the maximum', 'x'.repeat(98), undefined],
    ['a text of a byte more', 'x'.repeat(99), 'must be at most 100 bytes of JSON'],
    ['a half of a surrogate pair', '\ud800', 'must not contain a NUL or a lone surrogate'],
    ['false', false, undefined],
  ])('judges %s', (_, value, problem) => {
    expect(metadataProblem(value, bounds)).toBe(problem);
  });

  it('agrees with the size of the stored JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2 }), (value) => {
        const isTooLarge = Buffer.byteLength(JSON.stringify(value)) > bounds.bytes;
        fc.pre(metadataProblem(value, { bytes: Infinity, depth: Infinity }) === undefined);
        expect(metadataProblem(value, { bytes: bounds.bytes, depth: Infinity }) !== undefined).toBe(isTooLarge);
      }),
    );
  });
});
