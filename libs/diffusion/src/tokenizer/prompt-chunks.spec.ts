import type { ClipTokenizer } from './clip-tokenizer';
import { chunkPrompt, padChunks, parsePromptWeights, rowsOfTexts } from './prompt-chunks';

/** One id per character, rows of six: begin, four ids, end. */
const tokenizer = {
  maxLength: 6,
  tokenize: (text: string) => [...text].map((char) => char.charCodeAt(0)),
  frame: (ids: readonly number[]) => [1, ...ids, 2, ...new Array<number>(4 - ids.length).fill(0)],
} as unknown as ClipTokenizer;
const [a, b, c, d, e] = [...'abcde'].map((char) => char.charCodeAt(0));

describe(chunkPrompt.name, () => {
  it('gives one padded row for a short prompt', () => {
    expect(chunkPrompt('ab', tokenizer)).toEqual([{ inputIds: [1, a, b, 2, 0, 0] }]);
  });

  it('gives one row for an empty prompt', () => {
    expect(chunkPrompt('', tokenizer)).toEqual([{ inputIds: [1, 2, 0, 0, 0, 0] }]);
  });

  it('continues in a second row when the first is full', () => {
    expect(chunkPrompt('abcd', tokenizer)).toHaveLength(1);
    expect(chunkPrompt('abcde', tokenizer).map(({ inputIds }) => inputIds)).toEqual([
      [1, a, b, c, d, 2],
      [1, e, 2, 0, 0, 0],
    ]);
  });

  it('treats brackets as text unless weighting is on', () => {
    expect(chunkPrompt('(a)', tokenizer)[0]).toEqual({ inputIds: [1, 40, a, 41, 2, 0] });
  });

  it('puts weights on their ids and 1 on special ones, row by row', () => {
    expect(chunkPrompt('abc(de:2)', tokenizer, true)).toEqual([
      { inputIds: [1, a, b, c, d, 2], weights: [1, 1, 1, 1, 2, 1] },
      { inputIds: [1, e, 2, 0, 0, 0], weights: [1, 2, 1, 1, 1, 1] },
    ]);
  });
});

describe(padChunks.name, () => {
  it('adds empty rows up to the count', () => {
    expect(padChunks(chunkPrompt('a', tokenizer), 2, tokenizer)).toEqual([
      { inputIds: [1, a, 2, 0, 0, 0] },
      { inputIds: [1, 2, 0, 0, 0, 0] },
    ]);
  });
});

describe(rowsOfTexts.name, () => {
  const texts = { prompt: 'abcde', negativePrompt: null, guidanceScale: 7.5 };

  it('counts as many rows for the negative prompt as for the prompt, with guidance only', () => {
    expect(rowsOfTexts(texts, tokenizer)).toBe(4);
    expect(rowsOfTexts({ ...texts, negativePrompt: 'a'.repeat(9) }, tokenizer)).toBe(6);
    expect(rowsOfTexts({ ...texts, guidanceScale: 1 }, tokenizer)).toBe(2);
  });

  it('counts no more rows than a prompt may take', () => {
    expect(rowsOfTexts({ ...texts, prompt: 'a'.repeat(1_000) }, tokenizer)).toBe(2 * 32);
  });
});

describe(parsePromptWeights.name, () => {
  /** A prompt, and its pieces, each between bars and with its weight after a star where that is not 1. */
  const cases: [string, string][] = [
    ['', ''],
    ['a cat', 'a cat'],
    ['a (red) cat', 'a |red*1.1| cat'],
    ['a (red:1.3) cat', 'a |red*1.3| cat'],
    ['a (red:.5) cat', 'a |red*0.5| cat'],
    ['[blurry]', 'blurry*0.909'],
    ['((a))', 'a*1.21'],
    ['(a (b:2) c:1.5)', 'a *1.5|b*3| c*1.5'],
    ['([a])', 'a'],
    ['[a:1.3]', 'a:1.3*0.909'],
    ['3:45pm', '3:45pm'],
    ['(3:45pm)', '3:45pm*1.1'],
    [String.raw`\(a\) \[b\] c\\d`, String.raw`(a) [b] c\d`],
    [String.raw`\d`, String.raw`\d`],
    ['(a b', 'a b*1.1'],
    ['a) b]', 'a) b]'],
    ['a) (b:1.2)', 'a) |b*1.2'],
    ['(a:-2)', 'a*-2'],
    ['(a:99)', 'a*10'],
    ['()', ''],
    ['(a [b) c]', 'a *1.1|b| c*0.909'],
  ];

  it.each(cases)('reads %p', (prompt, expected) => {
    const rounded = (weight: number) => Math.round(weight * 1000) / 1000;
    const pieces = parsePromptWeights(prompt).map(({ text, weight }) =>
      rounded(weight) === 1 ? text : `${text}*${rounded(weight)}`,
    );
    expect(pieces.join('|')).toBe(expected);
  });

  it('limits weights however deep brackets nest', () => {
    const [piece] = parsePromptWeights('('.repeat(1990) + 'a');
    expect(piece).toEqual({ text: 'a', weight: 10 });
  });
});
