import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readSafetensorsHeader, SafetensorsError } from '../safetensors/safetensors-header';
import { withFile } from '../tensor/byte-source';
import { rotationsOf } from './int8-form';
import { type NamedTensor, type NamedTensors, type TensorType, tensorTypes, WeightsFileError } from './named-tensor';

/** The tensors of a safetensors file, of which only the header is read. @throws WeightsFileError if it is malformed. */
export async function readSafetensors(file: string): Promise<NamedTensors> {
  // Opening a pipe waits for a writer that may never come.
  if (!(await stat(file)).isFile())
    throw new WeightsFileError('It is a folder, a pipe or a device, and no file.', file);
  const { tensors, rotations } = await withFile(file, (source) => {
    const header = readSafetensorsHeader(source);
    return { ...header, rotations: rotationsOf(header, source) };
  }).catch((error: unknown) => {
    throw error instanceof SafetensorsError ? new WeightsFileError(error.message, file) : error;
  });
  const found = new Map<string, NamedTensor>();
  for (const [name, { dtype, shape, begin }] of tensors)
    // Other integers are counters and positions that no graph needs.
    if (dtype in tensorTypes && (dtype !== 'I8' || rotations.has(name)))
      found.set(name, { name, type: dtype as TensorType, shape, file, offset: begin });
  for (const [name, rotation] of rotations) {
    const tensor = found.get(name)!;
    const scale = { ...found.get(`${name}_scale`)!, shape: tensor.shape.slice(0, 1) };
    found.set(name, { ...tensor, int8: { scale, rotation } });
    found.delete(`${name}_scale`);
  }
  return found;
}

/** An index of a full model names a few thousand tensors. */
const MAX_INDEX_BYTES = 4 * 1024 * 1024;

/** The tensors of several files that an index names. @throws WeightsFileError */
export async function readShards(index: string): Promise<NamedTensors> {
  if ((await stat(index)).size > MAX_INDEX_BYTES) throw new WeightsFileError(`${index} is too long for an index.`);
  const map = parseIndex(index, await readFile(index, 'utf8'));
  const found = new Map<string, NamedTensor>();
  for (const shard of new Set(map.values())) {
    const tensors = await readSafetensors(join(dirname(index), shard));
    for (const [name, tensor] of tensors) if (map.get(name) === shard) found.set(name, tensor);
  }
  return found;
}

function parseIndex(index: string, text: string): Map<string, string> {
  let map: unknown;
  try {
    map = (JSON.parse(text) as { weight_map?: unknown } | null)?.weight_map;
  } catch {
    throw new WeightsFileError(`${index} is not JSON.`);
  }
  if (typeof map !== 'object' || map === null) throw new WeightsFileError(`${index} has no "weight_map".`);
  const files = Object.entries(map);
  for (const [, file] of files)
    if (typeof file !== 'string' || file !== basename(file) || file.includes('\\') || !file.endsWith('.safetensors'))
      throw new WeightsFileError(`${index} names ${JSON.stringify(file)}, which is no safetensors file beside it.`);
  return new Map(files as [string, string][]);
}

/** Names of a part's weights as diffusers and transformers write them, and `variant`s of them. */
const stems = ['diffusion_pytorch_model', 'model'];
const variants = ['', '.fp16', '.bf16', '.fp32'];

/**
 * The weights of a part in diffusers' layout: one file, or the index of several.
 * @throws WeightsFileError if there are none that can be read
 */
export async function readPart(folder: string): Promise<NamedTensors> {
  for (const variant of variants)
    for (const stem of stems) {
      const file = join(folder, `${stem}${variant}.safetensors`);
      if (existsSync(file)) return readSafetensors(file);
      for (const name of [`${stem}.safetensors.index${variant}.json`, `${stem}${variant}.safetensors.index.json`])
        if (existsSync(join(folder, name))) return readShards(join(folder, name));
    }
  throw new WeightsFileError(`${folder} has no weights in safetensors.`);
}
