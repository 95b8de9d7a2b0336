import { planesOf } from '../autoencoders/autoencoder';
import { RequestError } from '../errors';
import type { ModelFolder } from '../families/model-folder';
import type { HearPredictions } from '../pipelines/renderer';
import { Pipeline } from '../pipelines/pipeline';
import type { LoadOptions } from '../sessions/model-session';
import { MersenneTwister } from '../random/generator';
import { assertFinite, type LatentShape, type RgbImage } from '../tensor/planes';
import type { TrainingSettings } from './settings';
import { readTexts, type TrainingText } from './texts';

/** A picture of what is to be learnt; its edges are multiples of 64 pixels. */
export interface TrainingPicture {
  image: RgbImage;
  /** Text of what it shows, with the word that will stand for it: `a photo of zwx robot`. */
  caption: string;
}

/** A picture as the denoiser sees it, and its text. */
export interface Example {
  shape: LatentShape;
  mean: Float32Array;
  /** Missing where the picture is known exactly. */
  deviation?: Float32Array;
  text: TrainingText;
}

/** A row of a call of the denoiser, and what the base predicts for it. */
export interface PriorRow {
  shape: LatentShape;
  /** Noisy latents as the denoiser sees them. */
  sample: Float32Array;
  timestep: number;
  text: TrainingText;
  target: Float32Array;
}

/** All that a training shows, encoded. */
export interface Examples {
  /** Given pictures, with their mirrored ones if these may be shown. */
  shown: readonly Example[];
  /** Of pictures that the base drew. */
  prior: readonly PriorRow[];
  /** A given picture that is never shown, where there are enough of them. */
  keptBack?: Example | undefined;
  /** Of pictures that the base drew and that are not shown, to see whether it still would. */
  keptPrior: readonly PriorRow[];
  /** Stand-in for no caption. */
  noText: TrainingText;
}

/** The texts of all that is shown or judged by. */
export const textsOf = ({ shown, prior, keptBack, keptPrior, noText }: Examples): TrainingText[] => [
  ...[...shown, ...prior, ...(keptBack ? [keptBack] : []), ...keptPrior].map(({ text }) => text),
  noText,
];

/** From so many pictures on, one is kept back. */
const fewestToKeepOne = 4;
/** One of so many prior pictures is kept back, as long as these are few: each is judged often. */
const priorsForOneKept = 4;
const mostKeptPriors = 5;

/** Edges of pictures are multiples of this, so that all levels of a U-Net halve evenly. */
const edgeUnit = 64;

/** @throws RequestError naming the picture that cannot be trained with */
export function checkPictures(pictures: readonly TrainingPicture[]): void {
  if (pictures.length === 0) throw new RequestError('There are no pictures to train with.');
  for (const [i, { image }] of pictures.entries())
    if (image.width % edgeUnit !== 0 || image.height % edgeUnit !== 0)
      throw new RequestError(
        `Picture ${i + 1} is ${image.width} x ${image.height}; edges are multiples of ${edgeUnit} pixels.`,
      );
}

/** Encodes texts and pictures, and draws the prior ones: one part of the model after another, to spare memory. */
export async function encodeExamples(
  folder: ModelFolder,
  pictures: readonly TrainingPicture[],
  settings: TrainingSettings,
  load: LoadOptions,
): Promise<Examples> {
  const { priorPrompts, flips } = settings;
  const captions = pictures.map(({ caption }) => caption);
  const texts = await readTexts(folder.conditioner, [...captions, ...priorPrompts, ''], settings, load);
  const given: Example[][] = [];
  const encoder = await folder.autoencoder.openEncoder(load);
  try {
    for (const [i, { image }] of pictures.entries()) {
      load.signal?.throwIfAborted();
      const both = flips ? [image, mirrored(image)] : [image];
      given.push([]);
      for (const each of both) given[i].push({ ...(await encoder.encode(planesOf(each))), text: texts[i] });
    }
  } finally {
    await encoder.release();
  }
  const noText = texts.at(-1)!;
  const priors =
    priorPrompts.length > 0 ? await drawPriors(folder, settings, texts.slice(pictures.length, -1), noText, load) : [];
  const isKept = (i: number): boolean =>
    i % priorsForOneKept === priorsForOneKept - 1 && i < priorsForOneKept * mostKeptPriors;
  const [keptBack] = given.length >= fewestToKeepOne ? given.pop()! : [];
  return {
    shown: given.flat(),
    prior: priors.flatMap((rows, i) => (isKept(i) ? [] : rows)),
    keptBack,
    keptPrior: priors.flatMap((rows, i) => (isKept(i) ? rows : [])),
    noText,
  };
}

function mirrored({ width, height, data }: RgbImage): RgbImage {
  const turned = new Uint8Array(data.length);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let c = 0; c < 3; c++) turned[(y * width + x) * 3 + c] = data[(y * width + width - 1 - x) * 3 + c];
  return { width, height, data: turned };
}

/** Steps of a prior picture whose predictions are kept, and the share of them kept without a text too. */
const [keptSteps, silentShare] = [6, 0.6];

/**
 * Draws the prior pictures, and keeps for some steps of each what the base predicts. Many texts matter more than fine
 * pictures, so they are drawn in half of the model's steps.
 */
async function drawPriors(
  folder: ModelFolder,
  { priorPrompts, seed, size }: TrainingSettings,
  texts: readonly TrainingText[],
  noText: TrainingText,
  load: LoadOptions,
): Promise<PriorRow[][]> {
  const { steps = 25, cfg = 7.5, scheduler } = folder.defaults;
  const pipeline = await Pipeline.load(folder.path, load);
  const drawn: PriorRow[][] = [];
  const random = new MersenneTwister(seed);
  try {
    for (const [i, prompt] of priorPrompts.entries()) {
      load.signal?.throwIfAborted();
      const [trajectory] = await pipeline.prepare({
        ...{ prompt, width: size, height: size, numInferenceSteps: Math.ceil(steps / 2), guidanceScale: cfg },
        seeds: [seed + i],
        ...(scheduler && { scheduler }),
      });
      drawn.push([]);
      const { shape, totalSteps } = trajectory;
      const keep: HearPredictions = (rows, predictions) => {
        const isKept = random.uniform() * totalSteps < keptSteps;
        for (const [k, { sample, timestep }] of rows.entries()) {
          const isSilent = k < rows.length - 1;
          if (!isKept || (isSilent && random.uniform() > silentShare)) continue;
          // The predictions of a call are one array.
          const target = predictions[k].slice();
          drawn[i].push({ shape, sample, timestep, text: isSilent ? noText : texts[i], target });
        }
      };
      while (!trajectory.done) await pipeline.step([trajectory], keep);
      assertFinite(trajectory.latents, folder.denoiser.title);
    }
  } finally {
    await pipeline.release();
  }
  return drawn;
}
