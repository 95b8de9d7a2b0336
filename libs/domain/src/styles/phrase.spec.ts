import * as fc from 'fast-check';
import { findPhrases, Phrase } from './phrase';

describe(Phrase.name, () => {
  it.each([
    ['A Robot.', 'robot', true],
    ['two robots', 'robot', false],
    ['an old  robot', 'old robot', true],
    ['an old - robot', 'old robot', true],
    ['an oldrobot', 'old robot', false],
    ['', 'robot', false],
    ['a t-shirt', 't-shirt', true],
    ['a t shirt', 't-shirt', false],
    ['a - - x', '- - x', true],
    ['- - - - - - - - x', '- - - - - - - - x', true],
    ['-'.repeat(2000), '- - - - - - - - x', false],
    ['a café', 'CAFE\u0301', true],
    ['a cafe\u0301', 'café', true],
    ['a cafe', 'café', false],
    ['a 각 here', '\u1100\u1161\u11a8', true],
    ['ὈΔΥΣΣΕΎΣ', 'ὀδυσσεύς', true],
    ['the robot\u0301', 'robot', false],
    ['我的机器人在跑', '机器人', true],
    ['𝒳', '𝒳', true],
    ['anything', ' ', false],
  ])('of "%s" and "%s" is %s', (text, phrase, expected) => {
    expect(new Phrase(phrase).isIn(text)).toBe(expected);
  });

  it('matches like the equivalent regular expression', () => {
    const part = fc.constantFrom('a', 'b', '-', ' ', 'ab', 'é', '.', '_');
    const texts = fc.array(part, { maxLength: 80 }).map((parts) => parts.join(''));
    const phrases = fc.array(part, { minLength: 1, maxLength: 50 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(texts, phrases, (text, phrase) => {
        fc.pre(phrase.trim() !== '');
        const words = phrase
          .trim()
          .split(/\s+/)
          .map((word) => word.replace(/[.]/g, String.raw`\.`))
          .join(String.raw`[\s-]+`);
        const expression = new RegExp(String.raw`(?<![\p{L}\p{M}\p{N}_])${words}(?![\p{L}\p{M}\p{N}_])`, 'giu');
        expect(findPhrases(text, [new Phrase(phrase)]).map(({ start }) => start)[0]).toBe(expression.exec(text)?.index);
      }),
      { numRuns: 500 },
    );
  });
});

describe(findPhrases.name, () => {
  it('returns positions in the original text', () => {
    const text = 'ein cafe\u0301, dann CAFÉ und café';
    const places = findPhrases(text, [new Phrase('café')]).map(({ start, end }) => text.slice(start, end));
    expect(places).toEqual(['cafe\u0301', 'CAFÉ', 'café']);
  });

  it('prefers the first phrase in the list at a position, and finds no overlapping ones', () => {
    const found = findPhrases('old robot old', [new Phrase('old robot'), new Phrase('old'), new Phrase('robot old')]);
    expect(found.map(({ start, end, index }) => [start, end, index])).toEqual([
      [0, 9, 0],
      [10, 13, 1],
    ]);
  });
});
