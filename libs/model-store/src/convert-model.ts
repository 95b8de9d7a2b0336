import { copyFile, link, mkdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  type Conversion,
  countOf,
  cures,
  type ModelFolder,
  type NamedTensors,
  partFolders,
  planConversion,
  precisionOf,
  readModelParts,
  readPart,
  readSafetensors,
  type TargetPrecision,
} from '@app/diffusion/files';
import { isDiskFull } from '@app/process';
import { listFolder } from './model-layout';
import { ProgressMeter } from './model-progress';
import { checkDiskSpace, explainDiskErrors, ModelStoreError } from './model-store-error';
import type { Watched } from './place-files';
import { checkpointFile } from './select-files';

/** A transformer of more weights than this would need more memory in float32 than most machines have. */
const mostInFloat32 = 1e9;

/**
 * About how many bytes a model's weights take in int8 beside those that they are made of, before these are there to
 * tell; 0 where they stay as they are. Weights on the hub have two bytes.
 * @param precision undefined: what {@link usualPrecision} says
 */
export function bytesOfConversion(
  files: readonly { path: string; size: number }[],
  precision: TargetPrecision | undefined,
): number {
  const bytesOf = (isMeant: (part: string) => boolean): number =>
    files
      .filter(({ path }) => path.endsWith('.safetensors') && isMeant(path.split('/')[0]))
      .reduce((sum, { size }) => sum + size, 0);
  const usual = bytesOf((part) => part === 'transformer') / 2 > mostInFloat32 ? 'int8' : 'float32';
  return (precision ?? usual) === 'int8' ? bytesOf((part) => !part.startsWith('vae')) / 2 : 0;
}

/** The precision that a model gets where nobody asks for one: `float32` leaves it as it is. */
export function usualPrecision({ denoiser }: Pick<ModelFolder, 'denoiser'>): 'int8' | 'float32' {
  const weights = [...denoiser.tensors.values()].reduce((sum, { shape }) => sum + countOf(shape), 0);
  return denoiser.part === 'transformer' && weights > mostInFloat32 ? 'int8' : 'float32';
}

/** What is known of a model's precision before its weights are. */
export interface PrecisionWish {
  /** The one that is asked for. */
  precision: TargetPrecision | undefined;
  /** Whether it is for GPUs alone, which widen int8 again. */
  isForGpu?: boolean | undefined;
}

/**
 * The precision that is asked for, or else that of a GPU; undefined: what {@link usualPrecision} says. For a GPU
 * weights stay as they are, but for those in files of parts: what is written anyway is written in bfloat16.
 */
export function wantedPrecision(
  { precision, isForGpu = false }: PrecisionWish,
  isOfParts: boolean,
): TargetPrecision | undefined {
  return precision ?? (isForGpu ? (isOfParts ? 'bfloat16' : 'float32') : undefined);
}

/**
 * Writes a model's weights in another precision, those of its autoencoder excepted, into a folder that gets links to
 * its other files. A conversion that breaks off leaves that as it is, and the next one goes on with it.
 * @param files of a model that has been checked, relative to its folder `from`
 * @returns the files that were written
 * @throws ModelStoreError `InvalidModel` if it has no weights that can be converted, `NoSpace` before it begins
 */
export async function convertModel(
  from: string,
  to: string,
  files: readonly string[],
  precision: TargetPrecision,
  watched: Watched,
): Promise<string[]> {
  const { conversions, others } = await planModel(from, files, precision);
  if (conversions.size === 0)
    throw new ModelStoreError(
      'InvalidModel',
      `${files[0]} is of a model whose weights stay as they are. ${cures.plainWeights}`,
    );
  await explainDiskErrors(mkdir(to, { recursive: true }));
  const isWanted = (path: string): boolean => conversions.has(path.replace(/\.part$/, ''));
  for (const path of await listFolder(to)) if (!isWanted(path)) await rm(join(to, path));
  for (const path of others) {
    await explainDiskErrors(mkdir(dirname(join(to, path)), { recursive: true }));
    await link(join(from, path), join(to, path)).catch(() =>
      explainDiskErrors(copyFile(join(from, path), join(to, path))),
    );
  }
  await writeConversions(to, conversions, watched);
  return [...conversions.keys()];
}

/**
 * Writes files of weights into a folder, which may have some of them already, whole or not.
 * @throws ModelStoreError `NoSpace` before it begins
 */
export async function writeConversions(
  to: string,
  conversions: ReadonlyMap<string, Conversion>,
  { onProgress, signal }: Watched,
): Promise<void> {
  let [totalBytes, presentBytes] = [0, 0];
  for (const [path, { bytes }] of conversions) {
    totalBytes += bytes;
    for (const name of [path, `${path}.part`])
      presentBytes += await stat(join(to, name)).then(
        ({ size }) => size,
        () => 0,
      );
  }
  await checkDiskSpace(to, totalBytes - presentBytes);
  const meter = new ProgressMeter('convert', totalBytes, conversions.size, onProgress);
  for (const [path, conversion] of conversions) {
    await explainDiskErrors(mkdir(dirname(join(to, path)), { recursive: true }));
    let isFound = true;
    const onBytes = (bytes: number): void => {
      meter.set(path, bytes, isFound);
      isFound = false;
    };
    const written = conversion.write(join(to, path), { onBytes, signal });
    // Other faults may be of the files that are read.
    await written.catch((error: unknown) => (isDiskFull(error) ? explainDiskErrors(written) : written));
    meter.finish(path);
  }
}

/** The files of a model's weights in another precision, by their paths, and the files that stay as they are. */
async function planModel(from: string, files: readonly string[], precision: TargetPrecision) {
  const { keptInFloat } = (await readModelParts(from)).family;
  const conversions = new Map<string, Conversion>();
  const others = new Set(files);
  const convert = async (sources: readonly string[], target: string, tensors: NamedTensors): Promise<void> => {
    // What is in int8 has lost what another precision would need.
    if ([precision, 'int8'].includes(precisionOf(tensors))) return;
    conversions.set(target, await planConversion(tensors, precision, keptInFloat));
    for (const path of sources) others.delete(path);
  };
  for (const part of partFolders().filter((name) => !name.startsWith('vae'))) {
    const sources = files.filter((path) => path.startsWith(`${part}/`) && ofWeights.test(path));
    const stem = sources.some((path) => path.includes('/diffusion_')) ? 'diffusion_pytorch_model' : 'model';
    if (sources.length > 0) await convert(sources, `${part}/${stem}.safetensors`, await readPart(join(from, part)));
  }
  if (others.has(checkpointFile))
    await convert([checkpointFile], checkpointFile, await readSafetensors(join(from, checkpointFile)));
  return { conversions, others };
}

/** Weights, or the index of several files with them. */
const ofWeights = /\.safetensors(?:\.index.*\.json)?$/;
