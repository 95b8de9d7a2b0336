import { readFileSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { qwen3TokenizerFiles } from '@app/diffusion/files';
import { readSafetensorsHeader, type SafetensorsDtype } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { safetensorsHeader } from '../../libs/diffusion/src/safetensors/write-safetensors';
import { withFile } from '../../libs/diffusion/src/tensor/byte-source';
import { byteLength, type NamedTensors, readBytes } from '../../libs/diffusion/src/weights/named-tensor';
import { readPart } from '../../libs/diffusion/src/weights/safetensors-file';
import { unpackTransformerModel } from './families';

/** A tensor as it is stored. */
export interface StoredTensor {
  dtype: SafetensorsDtype;
  shape: readonly number[];
  bytes: Uint8Array;
}
export type StoredTensors = Map<string, StoredTensor>;

/** Made by scripts/goldens/original_names.py: rows of original tensors, in sixths. */
type Ranges = [original: string, begin: number, end: number][];
const originals = JSON.parse(readFileSync('test/golden/data/original-names.json', 'utf8')) as Record<
  string,
  Record<string, Ranges>
>;

export const writeStored = (file: string, tensors: StoredTensors, metadata?: Record<string, string>): Promise<void> =>
  writeFile(
    file,
    Buffer.concat([safetensorsHeader(tensors, metadata), ...[...tensors.values()].map(({ bytes }) => bytes)]),
  );

/** The tensors of a part of a folder of diffusers. */
export async function storedPart(folder: string, part: string): Promise<StoredTensors> {
  return stored(await readPart(join(folder, part)));
}

/** Everything in a file of safetensors, as it is stored. */
export async function storedFile(file: string): Promise<StoredTensors> {
  const { tensors } = await withFile(file, readSafetensorsHeader);
  const all = await readFile(file);
  return new Map(
    [...tensors].map(([name, { dtype, shape, begin, end }]) => [
      name,
      { dtype, shape, bytes: all.subarray(begin, end) },
    ]),
  );
}

async function stored(tensors: NamedTensors): Promise<StoredTensors> {
  const found: StoredTensors = new Map();
  for (const [name, tensor] of tensors) {
    const bytes = await readBytes(tensor, 0, byteLength(tensor));
    found.set(name, { dtype: tensor.type as SafetensorsDtype, shape: tensor.shape, bytes });
  }
  return found;
}

/** Tensors with diffusers' names as the program has them that the model was made with. */
export function asOriginal(kind: 'flux2' | 'z-image' | 'vae', tensors: StoredTensors): StoredTensors {
  const pieces = new Map<string, { begin: number; end: number; tensor: StoredTensor; from: Uint8Array }[]>();
  for (const [name, tensor] of tensors) {
    const [, weight, scale = ''] = /^(.+?)(_scale)?$/.exec(name)!;
    const ranges = originals[kind][weight] ?? [[originalVae(weight), 0, 6]];
    const sixths = ranges.reduce((sum, [, begin, end]) => sum + end - begin, 0);
    let at = 0;
    for (const [layer, begin, end] of ranges) {
      const original = layer + scale;
      const bytesOf = (sixth: number): number => (tensor.bytes.length / sixths) * sixth;
      const from = tensor.bytes.subarray(bytesOf(at), bytesOf((at += end - begin)));
      const before = pieces.get(original) ?? [];
      pieces.set(original, [...before, { begin, end, tensor, from }]);
    }
  }
  const whole = [...pieces].map(([name, parts]): [string, StoredTensor] => {
    const bytes = Buffer.concat(parts.toSorted((a, b) => a.begin - b.begin).map(({ from }) => from));
    const [, ...rest] = parts[0].tensor.shape;
    const perRow = parts[0].tensor.bytes.length / (parts[0].tensor.shape[0] ?? 1);
    const shape = [bytes.length / perRow, ...rest];
    const isConvolution = /\.mid\.attn_1\.(?:q|k|v|proj_out)\.weight$/.test(name);
    return [name, { dtype: parts[0].tensor.dtype, shape: isConvolution ? [...shape, 1, 1] : shape, bytes }];
  });
  return new Map(whole);
}

/** What FLUX.2's autoencoder has beside that of LDM. */
const originalVae = (name: string): string =>
  name.replace(/^quant_conv/, 'encoder.quant_conv').replace(/^post_quant_conv/, 'decoder.post_quant_conv');

/** Tokens of the embeddings of Qwen3. */
const vocabulary = 151_936;

/**
 * Writes a tiny model with a transformer that reads texts with the whole tokenizer, and has of configurations what its
 * weights tell.
 */
export async function unpackWithTokenizer(name: string, folder: string): Promise<void> {
  await unpackTransformerModel(name, folder);
  const tensors = await storedPart(folder, 'text_encoder');
  const { bytes, shape, dtype } = tensors.get('model.embed_tokens.weight')!;
  const all = Buffer.alloc((bytes.length / shape[0]) * vocabulary);
  for (let at = 0; at < all.length; at += bytes.length) all.set(bytes.subarray(0, all.length - at), at);
  tensors.set('model.embed_tokens.weight', { dtype, shape: [vocabulary, shape[1]], bytes: all });
  await writeStored(join(folder, 'text_encoder', 'model.safetensors'), tensors);
  for (const [file, json] of Object.entries(await qwen3TokenizerFiles()))
    await writeFile(join(folder, 'tokenizer', file), JSON.stringify(json));
  await changeJson(join(folder, 'text_encoder', 'config.json'), { vocab_size: vocabulary });
  await changeJson(join(folder, 'vae', 'config.json'), { norm_num_groups: 8 });
}

async function changeJson(file: string, values: object): Promise<void> {
  const json = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...json, ...values }));
}

/** Writes the three files that ComfyUI has of a model, into a new folder beside it. */
export async function writePartFiles(model: string, kind: 'flux2' | 'z-image', name: string) {
  const folder = `${model}-files`;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
  const files = {
    transformer: join(folder, name),
    textEncoder: join(folder, 'qwen_3_4b.safetensors'),
    vae: join(folder, 'ae.safetensors'),
  };
  await writeStored(files.transformer, asOriginal(kind, await storedPart(model, 'transformer')));
  await writeStored(files.textEncoder, await storedPart(model, 'text_encoder'));
  await writeStored(files.vae, asOriginal('vae', await storedPart(model, 'vae')));
  return files;
}

export const prefixed = (prefix: string, tensors: StoredTensors): StoredTensors =>
  new Map([...tensors].map(([name, tensor]) => [prefix + name, tensor]));
