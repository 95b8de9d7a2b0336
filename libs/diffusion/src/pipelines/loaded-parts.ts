import { noAdapters } from '../adapters/row-adapters';
import { checkPreview } from '../autoencoders/latent-preview';
import type { LatentDecoder } from '../autoencoders/autoencoder';
import type { Conditioning } from '../conditioners/conditioner';
import { type Denoiser, lengthOf } from '../denoisers/denoiser';
import { cures, ModelFolderError } from '../errors';
import type { ModelFolder } from '../families/model-folder';
import { schedulerNameOf } from '../schedulers';
import type { LoadOptions } from '../sessions/model-session';
import { tried } from '../sessions/tried';
import { areFinite, type LatentShape, notFinite } from '../tensor/planes';

/** Facts about a model, from its own files; nothing here is known in advance. */
export interface PipelineFacts {
  latentChannels: number;
  /** Pixels of the picture's edge for one of the latents' edge. */
  scaleFactor: number;
  /** The model's own scheduler: the name that a request would choose it by, diffusers' class name where none fits. */
  scheduler: string;
  /** Edge in pixels of the square pictures that the model was trained on. */
  nativeSize: number;
}

/** What of a model draws, its parts known to fit one another. */
export interface LoadedParts {
  folder: ModelFolder;
  facts: PipelineFacts;
  denoiser: Denoiser;
  decoder: LatentDecoder;
}

/** Edge of the latents that a model is tried with: the smallest that a denoiser with three halvings can take. */
const trialEdge = 8;

/**
 * Opens what of a model draws, tries each part once on a small input, and releases all of it if anything is wrong.
 * @param conditioning with which it is tried, of the model's own conditioner
 */
export async function loadParts(
  folder: ModelFolder,
  conditioning: Conditioning,
  options: LoadOptions,
): Promise<LoadedParts> {
  const opened: { release(): Promise<void> }[] = [];
  const open = async <T extends { release(): Promise<void> }>(opening: Promise<T>): Promise<T> => {
    const part = await opening;
    opened.push(part);
    return part;
  };
  try {
    const denoiser = await open(folder.denoiser.open(options));
    const decoder = await open(folder.autoencoder.openDecoder(options));
    const { latentChannels } = decoder;
    checkFit(folder, denoiser, conditioning);
    checkPreview(`${folder.path}/preview.json`, folder.preview, latentChannels);
    const shape: LatentShape = [latentChannels, trialEdge, trialEdge];
    await tryDenoiser(folder.denoiser.file, denoiser, conditioning, shape);
    const scaleFactor = await tryDecoder(folder.autoencoder.file, decoder, shape);
    const { schedulerJson, nativeSize } = folder;
    const scheduler = schedulerNameOf(schedulerJson) ?? String(schedulerJson._class_name);
    return { folder, facts: { latentChannels, scaleFactor, scheduler, nativeSize }, denoiser, decoder };
  } catch (error) {
    await Promise.all(opened.map((part) => part.release()));
    throw error;
  }
}

/** @throws ModelFolderError if the denoiser takes texts of another width than the conditioner gives */
function checkFit({ denoiser: files }: ModelFolder, { inputs }: Denoiser, { rows: [row] }: Conditioning): void {
  for (const [name, { dims }] of Object.entries(row)) {
    const [given, taken] = [dims.at(-1), lengthOf(inputs, name, dims.length)];
    if (taken !== undefined && Number.isFinite(taken) && taken !== given)
      throw new ModelFolderError(
        files.file,
        `takes embeddings ${taken} wide, and the text encoders give ${given}`,
        cures.oneModel,
      );
  }
}

async function tryDenoiser(
  file: string,
  denoiser: Denoiser,
  { rows: [conditioning] }: Conditioning,
  shape: LatentShape,
): Promise<void> {
  const trial = async (timestep: number, sample: Float32Array) => {
    const row = { sample, timestep, conditioning, guidanceScale: 1, adapters: noAdapters };
    return (await denoiser.predict([row], shape))[0];
  };
  const values = lengthOf(denoiser.inputs, 'sample', 1)! * trialEdge ** 2;
  const seen = Float32Array.from({ length: values }, (_, i) => Math.sin(i));
  // In half precision a sound model may overflow for one input and not for another, so it gets a second that is easier.
  const isSound = await tried(file, async () => {
    if (areFinite(await trial(999, seen))) return true;
    return areFinite(await trial(1, new Float32Array(values)));
  });
  if (!isSound) throw new ModelFolderError(file, notFinite, cures.otherWeights);
}

/** @returns pixels of the picture's edge for one of the latents' */
async function tryDecoder(file: string, decoder: LatentDecoder, shape: LatentShape): Promise<number> {
  const [channels] = shape;
  const latents = new Float32Array(channels * trialEdge ** 2);
  const { planes, height } = await tried(file, () => decoder.decode(latents, shape));
  if (!areFinite(planes)) throw new ModelFolderError(file, notFinite, cures.otherWeights);
  return height / trialEdge;
}
