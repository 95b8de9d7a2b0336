import type { ClipTokenizer } from '../tokenizer/clip-tokenizer';
import { ClipConditionerFiles, type ClipEncoderFiles } from './clip-conditioner';
import { chunkPrompt, lengthInChunks, padChunks } from './prompt-chunks';

/** One id per character, rows of six: begin, four ids, end. */
const tokenizer = {
  maxLength: 6,
  tokenize: (text: string) => [...text.replaceAll(' ', '')].map((char) => char.charCodeAt(0)),
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

describe('BREAK', () => {
  it.each([
    ['a BREAK b', [[a], [b]]],
    ['abcd BREAK e', [[a, b, c, d], [e]]],
    ['abcde BREAK a', [[a, b, c, d], [e], [a]]],
    ['a BREAK BREAK b', [[a], [], [b]]],
    ['BREAK a', [[], [a]]],
    ['a BREAK ', [[a]]],
    ['BREAK', [[]]],
  ])('ends a row with weighting, as in the web UI of AUTOMATIC1111: %j', (prompt, rows) => {
    const chunks = chunkPrompt(prompt, tokenizer, true);
    expect(chunks).toEqual(rows.map((ids) => ({ inputIds: tokenizer.frame(ids) })));
    expect(lengthInChunks(prompt, tokenizer, true).chunks).toBe(rows.length);
  });

  it('is a word like any other without weighting', () => {
    expect(chunkPrompt('BREAKa', tokenizer).map(({ inputIds }) => inputIds.slice(1, 5))).toEqual([
      [...'BREA'].map((char) => char.charCodeAt(0)),
      ['K'.charCodeAt(0), a, 2, 0],
    ]);
  });

  it('keeps a weight that reaches over it', () => {
    expect(chunkPrompt('(a BREAK b:2)', tokenizer, true)).toEqual([
      { inputIds: [1, a, 2, 0, 0, 0], weights: [1, 2, 1, 1, 1, 1] },
      { inputIds: [1, b, 2, 0, 0, 0], weights: [1, 2, 1, 1, 1, 1] },
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

describe("The memory of a picture's texts", () => {
  const files = new ClipConditionerFiles([{ tokens: tokenizer, liveWidth: 1 } as ClipEncoderFiles], false);
  const texts = { prompt: 'abcde', negativePrompt: null };
  const row = files.callBytes({ prompt: 'a' }, false);

  it('is that of as many rows for the negative prompt as for the prompt, with guidance only', () => {
    expect(files.callBytes(texts, true)).toBe(4 * row);
    expect(files.callBytes({ ...texts, negativePrompt: 'a'.repeat(9) }, true)).toBe(6 * row);
    expect(files.callBytes(texts, false)).toBe(2 * row);
  });

  it('is of no more rows than a prompt may take', () => {
    expect(files.callBytes({ ...texts, prompt: 'a'.repeat(1_000) }, true)).toBe(2 * 32 * row);
  });
});
