import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClipTokenizer } from '@app/diffusion';
import { loadGoldenTable, recordGolden } from '../support/golden';

interface TokenTable {
  rows: { text: string; input_ids: number[]; length: number }[];
}

const vocabularies = {
  'tokens-clip': () => ClipTokenizer.clip({ padToken: 'end' }),
  'tokens-clip-zero': () => ClipTokenizer.clip({ padToken: 'zero' }),
  'tokens-shapes': () => ClipTokenizer.load(join(__dirname, '../../models/shapes/tokenizer')),
};

/** Tolerance: none, every id is equal. */
describe.each(Object.entries(vocabularies))('CLIPTokenizer, %s', (name, load) => {
  const { rows } = loadGoldenTable<TokenTable>(name);
  let tokenizer: ClipTokenizer;
  let wrong = 0;

  beforeAll(async () => {
    tokenizer = await load();
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

describe('the pad token', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokenizer-'));
    for (const file of ['vocab.json', 'merges.txt'])
      await cp(join(__dirname, '../../models/shapes/tokenizer', file), join(folder, file));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const [zero, end, added_tokens_decoder] = [{ pad_token: '!' }, { pad_token: '<|endoftext|>' }, {}];

  /** As `CLIPTokenizer.from_pretrained` of transformers reads it. */
  it.each([
    ['special_tokens_map.json as in Stable Diffusion 2.x, whatever tokenizer_config.json says', end, zero, 0],
    ['special_tokens_map.json alone', {}, zero, 0],
    ['tokenizer_config.json alone', zero, {}, 0],
    ['tokenizer_config.json if it lists the added tokens', { ...end, added_tokens_decoder }, zero, 775],
    ['neither: the end token', {}, {}, 775],
  ])('is that of %s', async (_, config, special, id) => {
    await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
    await writeFile(join(folder, 'special_tokens_map.json'), JSON.stringify(special));
    expect((await ClipTokenizer.load(folder)).frame([]).at(-1)).toBe(id);
  });
});
