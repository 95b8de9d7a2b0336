import { existsSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { cures, ModelFolderError } from '../errors';
import { OnnxModelError } from '../onnx/onnx-model';
import { type NamedTensors, UnknownFormError, WeightsFileError } from '../weights/named-tensor';
import { readOnnx } from '../weights/onnx-file';
import { type PartName, partsOfCheckpoint, withDiffusersNames } from '../weights/original-names';
import { readPart, readSafetensors } from '../weights/safetensors-file';
import { families } from '.';
import type { ModelWeights } from './family';
import { isPointer, isPointerFile, rethrowPassing, statFile } from '../weights/folder-files';
import { otherWeights } from './other-weights';

/** A safetensors file beside a checkpoint whose autoencoder takes the place of the checkpoint's. */
export const vaeFile = 'vae.safetensors';

/** The folders that diffusers and exports have for a part. */
const foldersOf = (part: PartName): readonly string[] => [part, `${part}_decoder`, `${part}_encoder`];

const partNames = (): PartName[] => [...new Set(families.flatMap(({ parts }) => Object.keys(parts)))];

/** The folders of all parts of all families. */
export const partFolders = (): string[] => partNames().flatMap(foldersOf);

/** The folders of what predicts: a folder without any holds a checkpoint, if anything. */
export const denoiserFolders = (): string[] => [...new Set(families.map(({ denoiserPart }) => denoiserPart))];

/**
 * The weights of a model, of which only headers are read: a folder of diffusers with safetensors, an ONNX export whose
 * weights can be named, or one checkpoint.
 * @throws ModelFolderError
 */
export async function readModelWeights(folder: string): Promise<ModelWeights> {
  const names = await readdir(folder);
  const files = names.filter((name) => name.endsWith('.safetensors') && name !== vaeFile);
  if (!denoiserFolders().some((name) => names.includes(name)) && files.length > 0) return readCheckpoint(folder, files);
  const tensors = new Map<PartName, NamedTensors>();
  const from = new Map<PartName, string>();
  for (const part of partNames())
    for (const name of foldersOf(part)) {
      const at = join(folder, name);
      if (!existsSync(at) || (part === 'vae' && names.includes(vaeFile))) continue;
      // The encoder of an export comes to its decoder; weights of diffusers have both.
      if (name !== part && tensors.get(part)?.has('encoder.conv_in.weight')) continue;
      const read = await readPartFolder(part, at);
      tensors.set(part, new Map([...(tensors.get(part) ?? []), ...read.tensors]));
      from.set(part, from.get(part) ?? read.file);
    }
  if (names.includes(vaeFile)) await replaceVae(folder, tensors, from);
  return { tensors, files: from, isCheckpoint: false, marks: new Set() };
}

async function readCheckpoint(folder: string, names: readonly string[]): Promise<ModelWeights> {
  if (names.length > 1)
    throw new ModelFolderError(
      folder,
      `holds several checkpoints (${names.slice(0, 3).join(', ')})`,
      cures.removeOthers,
    );
  const file = join(folder, names[0]);
  const all = await refusing(file, () => readSafetensors(file));
  const other = otherWeights(all);
  if (other) throw new ModelFolderError(file, other.is, other.cure);
  const tensors = partsOfCheckpoint(all);
  if (tensors.size === 0) tensors.set(...barePart(file, all));
  const from = new Map([...tensors.keys()].map((part) => [part, file]));
  if (existsSync(join(folder, vaeFile))) await replaceVae(folder, tensors, from);
  const marks = new Set(['v_pred', 'ztsnr'].filter((name) => all.has(name)));
  if ([...all.keys()].some((name) => name.startsWith('cond_stage_model.model.'))) marks.add('openclip');
  return { tensors, files: from, isCheckpoint: true, marks };
}

/** A part by itself, whose names have no prefix. @throws ModelFolderError if it is none */
function barePart(file: string, all: NamedTensors): [PartName, NamedTensors] {
  const has = (beginning: string): boolean => [...all.keys()].some((name) => name.startsWith(beginning));
  if (has('input_blocks.') || has('down_blocks.')) return ['unet', withDiffusersNames('unet', all)];
  if (has('decoder.')) return ['vae', withDiffusersNames('vae', all)];
  throw new ModelFolderError(file, 'has no weights of a model that is known', cures.otherModel);
}

async function replaceVae(
  folder: string,
  tensors: Map<PartName, NamedTensors>,
  from: Map<PartName, string>,
): Promise<void> {
  const file = join(folder, vaeFile);
  const all = await refusing(file, () => readSafetensors(file));
  const vae = partsOfCheckpoint(all).get('vae') ?? withDiffusersNames('vae', all);
  // A decoder is what both kinds of autoencoders have, each by its own names.
  if (!vae.has('decoder.conv_in.weight') && !vae.has('decoder.layers.0.weight'))
    throw new ModelFolderError(file, otherWeights(all)?.is ?? 'is no autoencoder', cures.ownVae);
  tensors.set('vae', vae);
  from.set('vae', file);
}

async function readPartFolder(part: PartName, folder: string): Promise<{ tensors: NamedTensors; file: string }> {
  const graph = await graphIn(folder);
  if (graph !== undefined) await statFile(graph);
  const read = await refusing(graph ?? folder, () => (graph === undefined ? readPart(folder) : readOnnx(graph)));
  const tensors = withDiffusersNames(part, read);
  return { tensors, file: graph ?? tensors.values().next().value?.file ?? folder };
}

/** The graph of an export's part: `model.onnx`, or the only one; none beside weights of diffusers. */
async function graphIn(folder: string): Promise<string | undefined> {
  const names = await readdir(folder);
  if (names.some((name) => /\.safetensors(?:\.index.*\.json)?$/.test(name))) return undefined;
  const graphs = names.filter((name) => name.endsWith('.onnx'));
  const name = graphs.includes('model.onnx') ? 'model.onnx' : graphs.length === 1 ? graphs[0] : undefined;
  return name && join(folder, name);
}

/** Reads weights, and tells the file at fault where they are refused. @throws ModelFolderError */
export async function refusing<T>(path: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    rethrowPassing(error);
    const { code, path: at = path } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new ModelFolderError(at, 'is missing', cures.installAgain);
    if (code !== undefined) throw new ModelFolderError(at, `cannot be read (${code})`, cures.allowReading);
    if (!(error instanceof WeightsFileError || error instanceof OnnxModelError)) throw error;
    const file = (error instanceof WeightsFileError && error.file) || path;
    if (statSync(file).isFile() && isPointerFile(file)) throw new ModelFolderError(file, isPointer, cures.getFile);
    const reason = error.message.replaceAll(path, basename(path)).replace(/\.$/, '');
    const cure = error instanceof UnknownFormError ? cures.knownForm : cures.installAgain;
    throw new ModelFolderError(file, `cannot be read: ${reason}`, cure);
  }
}
