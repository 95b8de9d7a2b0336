import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelFolderError } from '@app/diffusion';
import { qwen3Prompt, qwen3Tokenizer } from '../../libs/diffusion/src/families/transformers';
import { LanguageModelTokenizer } from '../../libs/diffusion/src/tokenizer/language-model-tokenizer';
import { unpackTransformerModel } from '../support/families';
import { loadGoldenTable } from '../support/golden';

/** Made by scripts/goldens/qwen_tokens.py and ernie_pictures.py. */
interface TokenTable {
  pad: number;
  templates: { text: string; flux2: string; 'z-image': string }[];
  rows: { text: string; input_ids: number[] }[];
}

const { pad, templates, rows } = loadGoldenTable<TokenTable>('tokens-qwen');
let model: string;
let folder: string;
let tokenizer: LanguageModelTokenizer;

beforeAll(async () => {
  model = await mkdtemp(join(tmpdir(), 'qwen-tokenizer-'));
  await unpackTransformerModel('z-image-turbo', model);
  folder = join(model, 'tokenizer');
  tokenizer = await qwen3Tokenizer(folder);
});
afterAll(() => rm(model, { recursive: true }));

/** Tolerance: none, every id is equal. */
it.each(rows.map((row) => [row.text.slice(0, 40), row] as const))('transformers gives the ids of %j', (_, row) => {
  expect(tokenizer.tokenize(row.text)).toEqual(row.input_ids);
});

it("transformers gives the ids of all texts with Mistral's, behind the token that begins one", async () => {
  const { rows: others } = loadGoldenTable<Pick<TokenTable, 'rows'>>('tokens-mistral');
  const ernie = join(model, 'ernie-image');
  await unpackTransformerModel('ernie-image', ernie);
  const mistral = await LanguageModelTokenizer.load(join(ernie, 'tokenizer'), ['<s>']);
  expect(others.length).toBeGreaterThan(80);
  for (const { text, input_ids: ids } of others) expect([text, mistral.tokenize(`<s>${text}`)]).toEqual([text, ids]);
});

it.each(templates)("Qwen3's chat template writes the same: $text", ({ text, ...expected }) => {
  expect(qwen3Prompt(text, { enableThinking: false })).toBe(expected.flux2);
  expect(qwen3Prompt(text, { enableThinking: true })).toBe(expected['z-image']);
});

it('pads on the right with the pad token that the folder names', () => {
  expect(tokenizer.padded([1, 2], 5)).toEqual([1, 2, pad, pad, pad]);
  expect(tokenizer.vocabularySize).toBe(8282);
});

it('reads half of a pair of surrogates as the character that stands for a damaged one', () => {
  expect(tokenizer.tokenize('a\ud800b')).toEqual(tokenizer.tokenize('a\ufffdb'));
});

/** Work that grows with the square of the length would take minutes. */
it.each(['a', ' ', '\n', '!', 'ab', '😀', 'e\u0301', '\u0323\u0301', ' \n', '<|im_', '\u1100\u1161', "'s"])(
  'takes a moment for 32,000 characters of %j',
  (part) => {
    const text = part.repeat(32_000 / part.length);
    const before = process.cpuUsage();
    tokenizer.tokenize(text);
    const { user, system } = process.cpuUsage(before);
    expect(user + system).toBeLessThan(3_000_000);
  },
);

it.each<[string, string, (text: string) => string]>([
  ['tokenizer.json', 'is not valid JSON', (text) => text.slice(0, -1)],
  ['tokenizer.json', 'is cut short', (text) => changed(text, ({ model }) => (model.merges.length = 100))],
  ['tokenizer.json', 'has no list of added tokens', (text) => changed(text, (json) => (json.added_tokens = null))],
  ['tokenizer.json', 'has no special token <|im_start|>', (text) => text.replace('"<|im_start|>"', '"other"')],
  ['tokenizer.json', 'cannot be used', (text) => text.replace('"ByteLevel"', '"Unknown"')],
  ['tokenizer_config.json', 'has no special token <pad>', (text) => text.replace(/("pad_token": ")[^"]*/, '$1<pad>')],
])('refuses a %s that %s', async (name, reason, change) => {
  const file = join(folder, name);
  const text = await readFile(file, 'utf8');
  await writeFile(file, change(text));
  const loading = qwen3Tokenizer(folder);
  await expect(loading).rejects.toThrow(ModelFolderError);
  await expect(loading).rejects.toThrow(reason);
  await writeFile(file, text);
});

interface TokenizerJson {
  model: { merges: unknown[] };
  added_tokens: unknown;
}

function changed(text: string, change: (json: TokenizerJson) => void): string {
  const json = JSON.parse(text) as TokenizerJson;
  change(json);
  return JSON.stringify(json);
}
