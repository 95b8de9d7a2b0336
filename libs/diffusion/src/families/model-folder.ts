import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type LatentRgbMap, readPreview } from '../autoencoders/latent-preview';
import type { ModelKind } from '../denoisers/denoiser';
import { cures, ModelFolderError, resultsOf } from '../errors';
import type { SchedulerJson } from '../schedulers/scheduler-config';
import { type JsonObject, readJsonFile, rethrowPassing } from '../weights/folder-files';
import type { PartName, PartTensors } from '../weights/original-names';
import { families } from '.';
import { checkParts } from './check-parts';
import type { Family, ModelParts, ModelWeights } from './family';
import { type ModelDefaults, readModelDefaults } from './model-defaults';
import { readModelWeights } from './model-parts';
import { readModelScheduler } from './model-scheduler';
import { refuseUnfit } from './refuse-unfit';
import { mostAreas } from './sizes';
import { whyNotTrained } from './why-not-trained';

/** A model's latents may be smaller, as those of tests are. */
const leastMultiple = 8;

/** A model without its weights: what it is, and where they are. */
export interface ModelFolder extends ModelParts {
  path: string;
  family: Family;
  kind: ModelKind;
  tensors: PartTensors;
  schedulerJson: SchedulerJson;
  /** Values that it is drawn with where a request does not say. */
  defaults: ModelDefaults;
  /** Edge in pixels of square pictures. */
  nativeSize: number;
  /** Pixels of which each edge of a picture is a multiple. */
  sizeMultiple: number;
  /** Pixels of a picture at most. */
  maxPixels: number;
  preview: LatentRgbMap | undefined;
}

/**
 * Reads a model: a folder of diffusers, an ONNX export, or a folder with one checkpoint in the original names. Only
 * headers of weights are read.
 * @param weights that it will have, where they are not written yet
 * @throws ModelFolderError naming each file that is missing or wrong
 */
export async function readModelFolder(path: string, weights?: ModelWeights): Promise<ModelFolder> {
  const model = await readModelParts(path, weights);
  await checkParts(path, model);
  return model;
}

/** The same, before it is known whether its parts have all weights and fit one another. */
export async function readModelParts(path: string, given?: ModelWeights): Promise<ModelFolder> {
  const found = await stat(path).catch(rethrowPassing);
  if (!found) throw new ModelFolderError(path, 'does not exist', cures.installAgain);
  if (!found.isDirectory()) throw new ModelFolderError(path, 'is not a folder', cures.installAgain);
  const index = await readModelIndex(path);
  const weights = given ?? (await readModelWeights(path));
  const configs = await readConfigs(path, weights);
  const recognised = families.find((each) => each.recognises({ ...weights, configs }));
  const family = recognised ?? familyOfIndex(index) ?? families.at(-1)!;
  refuseMissing(path, weights, family);
  const defaults = readModelDefaults(path);
  // Faults of the parts are told beside those of the defaults and of the scheduler.
  const known = await defaults.catch((): ModelDefaults => ({}));
  const scheduler = readModelScheduler(path, family.scheduler, {
    ...(weights.marks.has('v_pred') && { prediction_type: 'v_prediction' }),
    ...(weights.marks.has('ztsnr') && { rescale_betas_zero_snr: true }),
    ...(known.prediction_type && { prediction_type: known.prediction_type }),
  });
  const schedulerJson = await scheduler.catch(() => family.scheduler.usual);
  const { parts, ...read } = await resultsOf({
    parts: () => family.partsOf({ ...weights, path, index, configs, defaults: known, schedulerJson }),
    defaults: () => defaults,
    preview: () => readPreview(join(path, 'preview.json')),
    schedulerJson: () => scheduler,
  });
  refuseUnfit({ path, family, ...weights, ...parts, schedulerJson }, read.defaults);
  const training = whyNotTrained(family, parts, read.defaults);
  const nativeSize = read.defaults.size ?? parts.denoiser.nativeSize ?? family.nativeSize;
  return {
    ...{ path, family, ...read, ...parts, tensors: weights.tensors },
    defaults: { ...parts.usual, ...read.defaults },
    cannot: { ...whyNoReferences(parts), ...parts.cannot, ...(training !== undefined && { training }) },
    kind: parts.denoiser.kind,
    nativeSize,
    sizeMultiple: Math.max(leastMultiple, parts.autoencoder.scaleFactor * (parts.denoiser.patch ?? 1)),
    maxPixels: read.defaults.max_pixels ?? mostAreas * nativeSize ** 2,
  };
}

function whyNoReferences({ denoiser, autoencoder }: ModelParts): ModelParts['cannot'] {
  if (!denoiser.takesReferences) return { references: 'It looks at no pictures beside the text.' };
  return autoencoder.hasEncoder ? {} : { references: 'It has no encoder, so it cannot read a picture.' };
}

/**
 * The `model_index.json` of a folder, if there is one.
 * @throws ModelFolderError if it names a pipeline that draws in another way
 */
export async function readModelIndex(path: string): Promise<JsonObject | undefined> {
  const file = join(path, 'model_index.json');
  const index = await readJsonFile(file, { optional: true });
  const pipelineClass = index?._class_name;
  if (typeof pipelineClass === 'string' && !families.some(({ pipelines }) => pipelines.test(pipelineClass)))
    throw new ModelFolderError(
      file,
      `describes a ${pipelineClass}, which is none of ${families.map(({ title }) => title).join(', ')}`,
      cures.otherModel,
    );
  return index;
}

/** The family that a folder is to be of, whose weights are not there or not what tells it. */
function familyOfIndex(index: JsonObject | undefined): Family | undefined {
  return families.findLast(({ pipelines }) => pipelines.test(String(index?._class_name)));
}

function refuseMissing(path: string, { tensors, files }: ModelWeights, { parts }: Family): void {
  const missing = Object.keys(parts).filter((part) => !tensors.has(part));
  if (missing.length === 0) return;
  if (tensors.size === 0) throw new ModelFolderError(path, 'has no model in it', cures.installAgain);
  const titleOf = (part: PartName): string => `${parts[part] ?? 'part'} (${part})`;
  const has = [...tensors.keys()].map(titleOf).join(', ');
  throw new ModelFolderError(
    files.values().next().value ?? path,
    `lacks the ${missing.map(titleOf).join(' and the ')}${has && ` and has only the ${has}`}`,
    cures.wholeModel,
  );
}

async function readConfigs(path: string, { tensors }: ModelWeights): Promise<Map<PartName, JsonObject>> {
  const read = async (part: PartName) => {
    for (const folder of [part, `${part}_decoder`]) {
      const json = await readJsonFile(join(path, folder, 'config.json'), { optional: true });
      if (json) return [part, json] as const;
    }
    return undefined;
  };
  const steps = Object.fromEntries([...tensors.keys()].map((part) => [part, () => read(part)]));
  const found = Object.values(await resultsOf<Record<string, object>>(steps as never));
  return new Map(found.filter((each) => each !== undefined) as [PartName, JsonObject][]);
}
