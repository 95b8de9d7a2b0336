import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  type Conversion,
  cures,
  describedFamilyOf,
  hasTransformer,
  type Family,
  type ModelDefaults,
  ModelFolderError,
  type NamedTensors,
  type PartName,
  partsOfFile,
  planConversion,
  precisionOf,
  qwen3TokenizerFiles,
  readModelFolder,
  readSafetensors,
  readWeightsFile,
  refusing,
  type TargetPrecision,
} from '@app/diffusion/files';
import { type PrecisionWish, usualPrecision, wantedPrecision, writeConversions } from './convert-model';
import { findPart, type InstalledPart } from './find-part';
import { refusalOfDefaults, writeDefaults } from './installed-defaults';
import { checkKind, listFolder, type ModelLayout } from './model-layout';
import { explainDiskErrors, explainRefusal, ModelStoreError } from './model-store-error';
import { isSmall, placeFiles, type Watched } from './place-files';

/** The weights of a model that comes as files of its parts. */
export interface GivenParts {
  tensors: Map<PartName, NamedTensors>;
  /** Path of each part's file. */
  files: Map<PartName, string>;
  /** What the file of the text encoder says of it. */
  textConfig: Record<string, unknown>;
}

/** Files that are given beside that of a transformer, or of all parts: the absolute path of each. */
export interface FilesBeside {
  text_encoder?: string | undefined;
  vae?: string | undefined;
}

/**
 * The parts that a file has, and those beside it.
 * @returns undefined if it has no transformer: then it is no file of such a model
 * @throws ModelStoreError `InvalidModel`, or `InvalidSource` for a file beside it
 */
export async function readGivenParts(file: string, beside: FilesBeside): Promise<GivenParts | undefined> {
  const isOfTransformer = async (): Promise<boolean> => hasTransformer(await readSafetensors(file));
  if (!file.endsWith('.gguf') && !(await isOfTransformer().catch(() => false))) return undefined;
  const given: GivenParts = { tensors: new Map(), files: new Map(), textConfig: {} };
  await addParts(given, file, 'transformer');
  for (const part of ['text_encoder', 'vae'] as const) {
    const path = beside[part];
    if (path !== undefined)
      await addParts(given, path, part).catch((error: unknown) => {
        throw ofOption(error, file);
      });
  }
  return given;
}

/** Adds the parts of a file to others. @param wanted that it must have, and of which it is the file */
async function addParts(given: GivenParts, path: string, wanted: PartName): Promise<void> {
  const { tensors, metadata } = await explainRefusal('', () => refusing(path, () => readWeightsFile(path)));
  const parts = await explainRefusal('', () => refusing(path, () => partsOfFile(tensors)));
  const architecture = metadata.get('general.architecture') ?? 'qwen3';
  if (!parts.has(wanted) || (wanted === 'text_encoder' && architecture !== 'qwen3'))
    throw new ModelStoreError('InvalidModel', `${path} has no ${titles[wanted]}. ${cures.partFile}`);
  for (const [part, own] of parts) {
    if (wanted !== 'transformer' && part !== wanted) continue;
    given.tensors.set(part, own);
    given.files.set(part, path);
  }
  if (wanted === 'text_encoder')
    given.textConfig = {
      rope_theta: metadata.get('qwen3.rope.freq_base'),
      rms_norm_eps: metadata.get('qwen3.attention.layer_norm_rms_epsilon'),
    };
}

const titles: Readonly<Record<PartName, string>> = {
  transformer: 'transformer of FLUX.2 [klein] or Z-Image',
  text_encoder: 'text encoder Qwen3',
  vae: 'autoencoder',
};

/** The refusal of files that stand in options, not in `file`: what was downloaded of that is kept. */
function ofOption(error: unknown, file: string): unknown {
  if (!(error instanceof ModelStoreError) || error.code !== 'InvalidModel') return error;
  const { cause } = error;
  if (cause instanceof ModelFolderError && cause.file === file) return error;
  return new ModelStoreError('InvalidSource', error.message, { cause });
}

interface AssembleOptions extends Watched, PrecisionWish {
  /** Name of the transformer's file. */
  name: string;
  modelsDir: string;
  isDistilled?: boolean;
  defaults: ModelDefaults | undefined;
}

/**
 * Writes a folder of diffusers from files of parts. Parts that are not among them are those of an installed model that
 * fit, linked. What breaks off leaves the folder as it is, and the next call goes on with it.
 * @throws ModelStoreError `InvalidSource` if a part is missing, `InvalidModel`, `NoSpace` before it begins
 */
export async function assembleModel(
  given: GivenParts,
  to: string,
  { name, modelsDir, precision, isForGpu, isDistilled, defaults, ...watched }: AssembleOptions,
): Promise<ModelLayout> {
  const family = describedFamilyOf(given.tensors);
  const file = given.files.get('transformer')!;
  if (!family) throw new ModelStoreError('InvalidModel', `${file} has no ${titles.transformer}. ${cures.partFile}`);
  if (precision === 'bfloat16' && precisionOf(given.tensors.get('transformer')!) === 'int8')
    throw new ModelStoreError('InvalidModel', `${file} is in int8, which cannot be widened. ${cures.plainWeights}`);
  const wanted = wantedPrecision({ precision, isForGpu }, true);
  const found = new Map<PartName, InstalledPart>();
  for (const part of Object.keys(family.parts).filter((each) => !given.tensors.has(each))) {
    const installed = await findPart(modelsDir, part, family, given.tensors, wanted);
    if (!installed || (installed.precision === 'int8' && (wanted ?? 'int8') !== 'int8'))
      throw new ModelStoreError('InvalidSource', missing(file, part, family, installed));
    found.set(part, installed);
  }
  const tensors = new Map([...given.tensors, ...[...found].map(([part, one]) => [part, one.tensors] as const)]);
  const files = new Map([...given.files, ...[...found].map(([part, one]) => [part, one.file] as const)]);
  const json = family.described.filesOf(tensors, isDistilled ?? family.described.isDistilled(name));
  Object.assign(json['text_encoder/config.json'], given.textConfig);
  await clear(to, [...given.tensors.keys()].map(targetOf));
  await explainDiskErrors(writeFolder(to, { ...json, ...(!found.has('text_encoder') && (await tokenizer())) }));
  const links = new Map([...found.values()].flatMap((one) => [...one.links]));
  const small = new Map([...links].filter(([path]) => isSmall(path)));
  await placeFiles(small, to, {});
  if (defaults) await explainRefusal(to, () => writeDefaults(to, defaults));
  const weights = { tensors, files, isCheckpoint: false, marks: new Set<string>() };
  const model = await explainRefusal(to, () => readModelFolder(to, weights)).catch((error: unknown) => {
    throw refusalOfDefaults(error) ?? ofOption(error, file);
  });
  const target = wanted ?? usualPrecision(model);
  const conversions = new Map<string, Conversion>();
  for (const [part, own] of given.tensors)
    conversions.set(targetOf(part), await planConversion(own, targetIn(part, own, target), family.keptInFloat));
  for (const path of conversions.keys()) await explainDiskErrors(mkdir(dirname(join(to, path)), { recursive: true }));
  await writeConversions(to, conversions, watched);
  await placeFiles(new Map([...links].filter(([path]) => !small.has(path))), to, watched);
  return checkKind(to, 'model');
}

const targetOf = (part: PartName): string =>
  `${part}/${part === 'text_encoder' ? 'model' : 'diffusion_pytorch_model'}.safetensors`;

/** An autoencoder stays as it is, and what is in int8 has lost what another precision would need. */
function targetIn(part: PartName, tensors: NamedTensors, target: TargetPrecision): TargetPrecision {
  return part === 'vae' || precisionOf(tensors) === 'int8' ? 'float32' : target;
}

/** @param unfit the one that is installed, in int8 where another precision is wanted */
function missing(file: string, part: PartName, { title, parts }: Family, unfit: InstalledPart | undefined): string {
  const found = unfit
    ? `that of the installed model ${unfit.model} fits, but is in ${unfit.precision}`
    : 'no installed model has one that fits';
  const cure = `Give its file with "--${part.replace('_', '-')}"${unfit ? ', or "--precision int8"' : ''}.`;
  return `${file} is a file of ${title} without its ${parts[part]} (${part}), and ${found}. ${cure}`;
}

/** Removes what an earlier call has left, but for weights that it has written itself, whole or not. */
async function clear(folder: string, targets: readonly string[]): Promise<void> {
  await explainDiskErrors(mkdir(folder, { recursive: true }));
  for (const path of await listFolder(folder)) {
    const isOwn = (await stat(join(folder, path))).nlink === 1;
    if (!isOwn || !targets.includes(path.replace(/\.part$/, ''))) await rm(join(folder, path));
  }
}

async function tokenizer(): Promise<Record<string, object>> {
  const files = Object.entries(await qwen3TokenizerFiles());
  return Object.fromEntries(files.map(([path, json]) => [`tokenizer/${path}`, json]));
}

async function writeFolder(folder: string, json: Readonly<Record<string, object>>): Promise<void> {
  for (const [path, content] of Object.entries(json)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), `${JSON.stringify(content)}\n`);
  }
}
