import { join } from 'node:path';
import { ClipTokenizer } from '@app/diffusion';
import { loadGoldenTable, recordGolden } from '../support/golden';

interface TokenTable {
  rows: { text: string; input_ids: number[]; length: number }[];
}

const vocabularies = {
  'tokens-clip': join(__dirname, 'models/clip-tokenizer'),
  'tokens-shapes': join(__dirname, '../../models/shapes/tokenizer'),
};

/** Tolerance: none, every id is equal. */
describe.each(Object.entries(vocabularies))('CLIPTokenizer, %s', (name, folder) => {
  const { rows } = loadGoldenTable<TokenTable>(name);
  let tokenizer: ClipTokenizer;
  let wrong = 0;

  beforeAll(async () => {
    tokenizer = await ClipTokenizer.load(folder);
  });
  afterAll(() => recordGolden(name, rows.length, wrong, 0));

  it.each(rows.map((row) => [row.text.slice(0, 40), row] as const))('%j', (_, { text, input_ids, length }) => {
    wrong++;
    const ids = tokenizer.tokenize(text);
    expect(ids.length + 2).toBe(length);
    expect(tokenizer.frame(ids.slice(0, tokenizer.maxLength - 2))).toEqual(input_ids);
    wrong--;
  });

  it.each(['<|endoftext|>', '<|startoftext|>', 'a<|endoftext|>b'])('treats %s in a prompt as text', (text) => {
    const ids = tokenizer.tokenize(text);
    expect(ids.length).toBeGreaterThan(3);
    expect(ids).not.toContain(tokenizer.eos);
    expect(ids).not.toContain(tokenizer.bos);
  });
});

it('pads with the pad token that the model names', async () => {
  const tokenizer = await ClipTokenizer.load(join(__dirname, 'models/tiny/sd21-optimum/tokenizer'));
  const [exclamationMark] = [0];
  expect(tokenizer.frame([])).toEqual([774, 775, ...new Array<number>(75).fill(exclamationMark)]);
});
