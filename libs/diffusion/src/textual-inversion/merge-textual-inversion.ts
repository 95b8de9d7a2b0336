import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withTextualInversion } from '../finetune/weights-file';
import { readJsonFile } from '../model/model-files';
import { placeCopy, type PlaceCopy, shareFile, shareFolder } from '../model/shared-files';
import { rewriteGraph } from '../onnx/graph-rewrite';
import { FLOAT } from '../onnx/onnx-proto';
import { readFloats } from '../safetensors/safetensors';
import { wordsWith } from '../tokenizer/added-tokens';
import { fitTextualInversion } from './textual-inversion';
import { RequestError } from '../errors';

export interface MergeTextualInversionOptions {
  /** A model folder in diffusers' layout; only its `text_encoder` and `tokenizer` are changed. */
  baseFolder: string;
  /** The embedding's safetensors file. */
  embedding: string;
  /** The word in a prompt that the embedding stands for; case is ignored. */
  token: string;
  /** The folder to write, and how to place files that cannot be linked: see `MergeLoraOptions`. */
  folder: string;
  placeCopy?: PlaceCopy;
}

const CONFIG = 'text_encoder/config.json';
const ADDED_TOKENS = 'tokenizer/added_tokens.json';

/**
 * Writes a model folder whose text encoder knows one more word: the embedding's vectors are appended to the table of
 * token embeddings, and `tokenizer/added_tokens.json` names them `<token>`, `<token>_1` and so on, as diffusers' loader
 * does (`TextualInversionLoaderMixin`). Everything else is shared with the base, see `mergeLora`.
 * @returns the number of added rows
 * @throws WeightsError if the embedding does not fit; RangeError if the token is not a single word; the
 * folder must then not be used
 */
export async function mergeTextualInversion(options: MergeTextualInversionOptions): Promise<number> {
  const { baseFolder, folder, placeCopy: copy = placeCopy } = options;
  const token = options.token.toLowerCase();
  if (!/^\S{1,100}$/u.test(token)) throw new RequestError(`The token ${JSON.stringify(token)} is not a single word.`);
  return withTextualInversion(options.embedding, async (embedding, source) => {
    const { vectors, count } = embedding;
    const { model, table } = await fitTextualInversion(embedding, baseFolder);
    const { initializer, names, cast } = table;
    const [rows, width] = initializer.dims;
    const isGraph = (path: string) => path.startsWith('text_encoder/') && path.endsWith('.onnx');
    const isShared = (path: string) => path !== CONFIG && path !== ADDED_TOKENS && !isGraph(path);
    await shareFolder(baseFolder, folder, copy, isShared);
    const share = (from: string, to: string) => shareFile(from, to, copy);
    await rewriteGraph(model, join(folder, 'text_encoder'), share, new Set(names), async (file) => {
      const longer = new Float32Array((rows + count) * width);
      longer.set(await model.readFloats(initializer));
      longer.set(readFloats(source, vectors), rows * width);
      const data = await file.append(longer, cast ? FLOAT : initializer.dataType);
      return new Map([[initializer.name, { ...data, dims: [rows + count, width] }]]);
    });
    const config = await readJsonFile(join(baseFolder, CONFIG), { optional: true });
    if (config) await writeJson(join(folder, CONFIG), { ...config, vocab_size: rows + count });
    const before = ((await readJsonFile(join(baseFolder, ADDED_TOKENS), { optional: true })) ?? {}) as Record<
      string,
      number
    >;
    await writeJson(join(folder, ADDED_TOKENS), wordsWith(before, token, count, rows));
    return count;
  });
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`, { flag: 'wx', flush: true });
}
