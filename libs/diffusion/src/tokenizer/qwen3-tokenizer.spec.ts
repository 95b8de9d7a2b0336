import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LanguageModelTokenizer } from './language-model-tokenizer';
import { qwen3TokenizerFiles } from './vocabulary';

const folder = mkdtempSync(join(tmpdir(), 'qwen3-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('The tokenizer that comes with the library gives the ids that transformers gives with Qwen3’s own', async () => {
  for (const [name, json] of Object.entries(await qwen3TokenizerFiles()))
    writeFileSync(join(folder, name), JSON.stringify(json));
  const tokenizer = await LanguageModelTokenizer.load(folder, ['<|im_start|>', '<|im_end|>']);
  expect(tokenizer.vocabularySize).toBe(151_669);
  expect(tokenizer.tokenize('<|im_start|>user\na red fox, 水彩<|im_end|>\n<|im_start|>assistant\n')).toEqual([
    151644, 872, 198, 64, 2518, 38835, 11, 6567, 108, 112, 99414, 151645, 198, 151644, 77091, 198,
  ]);
  expect(tokenizer.tokenize("Ünïcödé naïve 12345 <think>x</think> 🦊 don't")).toEqual([
    ...[52491, 77, 37572, 66, 2956, 128505, 94880, 586, 220, 16, 17, 18, 19, 20, 220, 151667, 87, 151668],
    ...[11162, 99, 232, 1513, 944],
  ]);
  expect(tokenizer.padded([1], 3)).toEqual([1, 151_643, 151_643]);
  expect(await LanguageModelTokenizer.load(folder, ['<|im_start|>', '<|im_end|>'])).toBe(tokenizer);
  await expect(LanguageModelTokenizer.load(folder, ['<|nothing|>'])).rejects.toThrow('<|nothing|>');
});
