import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SchedulerJson } from '../schedulers/scheduler-config';
import { decoderValues, guidanceWidth, textEncoderValues, unetValues } from './graph-values';
import { ClipTokenizer } from '../tokenizer/clip-tokenizer';
import type { LatentRgbMap } from '../vae/latent-preview';
import { type Device, providerOf } from './device';
import { cures, ModelFolderError, resultsOf } from '../errors';
import { checkPreview, checkTokenizer, embeddingWidth, fixedSizeOf, latentChannels } from './parts-fit';
import { rethrowPassing } from './graph-fault';
import { type GraphFile, readGraphFile } from './graph-file';
import { type JsonObject, readJsonFile } from './model-files';
import { type ModelDefaults, readModelDefaults } from './model-defaults';
import { readModelScheduler } from './model-scheduler';

/** A model folder without its weights, checked as far as possible without loading it. */
export interface ModelFolder {
  path: string;
  textEncoder: GraphFile;
  unet: GraphFile;
  vaeDecoder: GraphFile;
  tokenizer: ClipTokenizer;
  schedulerJson: SchedulerJson;
  /** What it is drawn with where a request does not say. */
  defaults: ModelDefaults;
  /** `config.json` of the parts; older exports have none, so any key may be absent. */
  configs: { textEncoder: JsonObject; unet: JsonObject; vaeDecoder: JsonObject };
  /** Width of an embedding, if a graph or a configuration says it. */
  embeddingWidth: number | undefined;
  preview: LatentRgbMap | undefined;
}

/**
 * Pipeline class names in diffusers, old and new, and optimum for Stable Diffusion 1.x and 2.x;
 * their weights are the same.
 */
const pipelineClasses = /^(Onnx|ORT)?(StableDiffusion|LatentConsistencyModel)(Onnx|Img2Img|Inpaint)?Pipeline(Legacy)?$/;

/**
 * Reads a folder in diffusers' or optimum's ONNX layout: `text_encoder`, `unet` and `vae_decoder` with a graph each,
 * `tokenizer`, `scheduler/scheduler_config.json`. On a CUDA device a part's graph is `model_cuda.onnx` if it exists
 * beside the plain `model.onnx`. A part with a single `.onnx` file of another name uses that.
 * @throws ModelFolderError naming each file that is missing or wrong
 */
export async function readModelFolder(path: string, device: Device): Promise<ModelFolder> {
  const found = await stat(path).catch(rethrowPassing);
  if (!found) throw new ModelFolderError(path, 'does not exist', cures.installAgain);
  if (!found.isDirectory()) throw new ModelFolderError(path, 'is not a folder', cures.installAgain);
  const parts = await readParts(path, device);
  const { unet, textEncoder } = await readValues(parts);
  const { width } = await resultsOf({
    width: () => embeddingWidth(parts),
    tokenizer: () => checkTokenizer(parts, textEncoder?.sequenceLength),
    size: () => fixedSizeOf(parts),
    channels: () => checkPreview(parts, latentChannels(parts, unet?.facts)),
  });
  return { ...parts, embeddingWidth: width };
}

/** What is read by itself, so that everything missing or damaged is told at once. */
async function readParts(path: string, device: Device): Promise<Omit<ModelFolder, 'embeddingWidth'>> {
  const indexFile = join(path, 'model_index.json');
  const index = readJsonFile(indexFile, { optional: true });
  // Of a model of another kind nothing else need be said.
  refuseOtherKind(indexFile, await index.catch(() => undefined));
  const graph = async (part: string) => readGraphFile(await chooseGraph(join(path, part), device));
  const config = async (part: string) => {
    const file = join(path, part, 'config.json');
    const json = (await readJsonFile(file, { optional: true })) ?? {};
    checkValues(file, json);
    return json;
  };
  const {
    index: _,
    ofTextEncoder,
    ofUnet,
    ofVaeDecoder,
    ...parts
  } = await resultsOf({
    index: () => index,
    textEncoder: () => graph('text_encoder'),
    unet: () => graph('unet'),
    vaeDecoder: () => graph('vae_decoder'),
    tokenizer: () => ClipTokenizer.load(join(path, 'tokenizer')),
    defaults: () => readModelDefaults(path),
    schedulerJson: () => readModelScheduler(path),
    ofTextEncoder: () => config('text_encoder'),
    ofUnet: () => config('unet'),
    ofVaeDecoder: () => config('vae_decoder'),
    preview: () => readPreview(join(path, 'preview.json')),
  });
  return { path, ...parts, configs: { textEncoder: ofTextEncoder, unet: ofUnet, vaeDecoder: ofVaeDecoder } };
}

function refuseOtherKind(file: string, index: JsonObject | undefined): void {
  const pipelineClass = index?._class_name;
  if (typeof pipelineClass === 'string' && !pipelineClasses.test(pipelineClass))
    throw new ModelFolderError(
      file,
      `describes a ${pipelineClass}, which is not Stable Diffusion 1.x or 2.x`,
      cures.otherModel,
    );
}

/** What the graphs take and give, as far as they say it: before they are loaded, each is known to be that of its part. */
function readValues({ textEncoder, unet, vaeDecoder, configs }: Omit<ModelFolder, 'embeddingWidth'>) {
  return resultsOf({
    textEncoder: () => textEncoder.values && textEncoderValues(textEncoder.values),
    unet: () => unet.values && unetValues(unet.values, guidanceWidth(configs.unet)),
    vaeDecoder: () => vaeDecoder.values && decoderValues(vaeDecoder.values),
  });
}

/** The largest edge of latents or pictures that a configuration may name: far more than any model was trained on. */
const largestSize = 4096;

/**
 * Values that pictures depend on and that no graph contradicts. diffusers leaves null what does not apply,
 * and may give two edges.
 */
function checkValues(file: string, config: JsonObject): void {
  const { sample_size: size, scaling_factor: factor, shift_factor: shift } = config;
  const isSize = (edge: unknown): boolean => Number.isInteger(edge) && Number(edge) >= 1 && Number(edge) <= largestSize;
  const isMissing = (value: unknown): boolean => value === undefined || value === null;
  if (!isMissing(size) && !(Array.isArray(size) && size.length === 2 ? size : [size]).every(isSize))
    throw new ModelFolderError(file, `has a sample_size that is no integer from 1 to ${largestSize}`, cures.correct);
  if (!isMissing(factor) && (!Number.isFinite(factor) || factor === 0))
    throw new ModelFolderError(file, 'has a scaling_factor that is no number, infinite or 0', cures.correct);
  if (!isMissing(shift) && !Number.isFinite(shift))
    throw new ModelFolderError(file, 'has a shift_factor that is no number or infinite', cures.correct);
}

async function chooseGraph(folder: string, device: Device): Promise<string> {
  const names = await readdir(folder).catch((error: unknown) => {
    rethrowPassing(error);
    throw new ModelFolderError(folder, 'is missing', cures.installAgain);
  });
  const preferred = providerOf(device) === 'cuda' ? ['model_cuda.onnx', 'model.onnx'] : ['model.onnx'];
  const chosen = preferred.find((name) => names.includes(name));
  if (chosen) return join(folder, chosen);
  if (names.includes('model_cuda.onnx'))
    throw new ModelFolderError(
      join(folder, 'model.onnx'),
      'is missing, and model_cuda.onnx beside it needs a CUDA device',
      cures.needsCuda,
    );
  const graphs = names.filter((name) => name.endsWith('.onnx'));
  if (graphs.length === 1) return join(folder, graphs[0]);
  throw new ModelFolderError(join(folder, 'model.onnx'), 'is missing', cures.installAgain);
}

async function readPreview(file: string): Promise<LatentRgbMap | undefined> {
  const json = await readJsonFile(file, { optional: true, cure: cures.correctOrRemove });
  if (!json) return undefined;
  const numbers = (value: unknown, length?: number): value is number[] =>
    Array.isArray(value) && (length === undefined || value.length === length) && value.every((n) => Number.isFinite(n));
  const { weights, bias } = json;
  const rows: unknown[] = Array.isArray(weights) ? weights : [];
  if (rows.length === 3 && rows.every((row) => numbers(row)) && numbers(bias, 3)) return { weights: rows, bias };
  throw new ModelFolderError(file, 'does not hold three rows of weights and three biases', cures.correctOrRemove);
}
