import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Family,
  type NamedTensors,
  type PartName,
  type PartTensors,
  type Precision,
  precisionOf,
  readModelParts,
  type TargetPrecision,
} from '@app/diffusion/files';
import { listFolder } from './model-layout';
import { isModelName, namesIn } from './model-names';

/** A part of an installed model. */
export interface InstalledPart {
  /** Name of its model. */
  model: string;
  precision: Precision;
  tensors: NamedTensors;
  /** Path of its weights, for messages. */
  file: string;
  /** Its files, those of its tokenizer too: the absolute path of each, by its path in a model. */
  links: ReadonlyMap<string, string>;
}

/**
 * The part of an installed model that a transformer fits, in the precision that is wanted where there is one: int8 for
 * int8 or undefined, and floats for others.
 * @param tensors of the model that lacks it
 */
export async function findPart(
  modelsDir: string,
  part: PartName,
  family: Family,
  tensors: PartTensors,
  precision: TargetPrecision | undefined,
): Promise<InstalledPart | undefined> {
  const found: InstalledPart[] = [];
  for (const name of await namesIn(modelsDir)) {
    const folder = join(modelsDir, name);
    if (!isModelName(name) || !existsSync(join(folder, 'transformer')) || !existsSync(join(folder, part))) continue;
    const model = await readModelParts(folder).catch(() => undefined);
    const own = model?.tensors.get(part);
    const file = own?.values().next().value?.file ?? '';
    if (
      !model ||
      !own ||
      !file.startsWith(join(folder, part)) ||
      !fits(part, own, model.autoencoder.latentChannels, family, tensors)
    )
      continue;
    const folders = part === 'text_encoder' ? [part, 'tokenizer'] : [part];
    const paths = (await listFolder(folder)).filter((path) => folders.includes(path.split('/')[0]));
    found.push({
      model: name,
      precision: precisionOf(own),
      tensors: own,
      file,
      links: new Map(paths.map((path) => [path, join(folder, path)])),
    });
  }
  const isInt8 = (precision ?? 'int8') === 'int8';
  return found.find((one) => (one.precision === 'int8') === isInt8) ?? found[0];
}

function fits(part: PartName, own: NamedTensors, channels: number | undefined, family: Family, tensors: PartTensors) {
  if (part === 'vae') return channels !== undefined && channels === family.latentChannels?.(tensors);
  const embeddings = own.get('model.embed_tokens.weight') ?? own.get('embed_tokens.weight');
  const isQwen3 = [...own.keys()].some((name) => name.endsWith('layers.0.self_attn.q_norm.weight'));
  return isQwen3 && embeddings !== undefined && embeddings.shape[1] === family.textWidth?.(tensors);
}
