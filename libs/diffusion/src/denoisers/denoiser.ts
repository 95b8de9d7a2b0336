import type { LayerAdapters } from '../adapters/row-adapters';
import type { Provider } from '../sessions/device';
import type { GraphSession, LoadOptions, ValueFacts } from '../sessions/model-session';
import type { BuildGraph, PartFiles } from '../sessions/part-graph';
import type { Tensors } from '../sessions/tensor';
import type { LatentShape } from '../tensor/planes';

/** One row of a call: a picture under one of its texts. */
export interface DenoiserRow {
  /** Latents as the denoiser sees them, [channels, height, width]; further channels stand behind them. */
  sample: Float32Array;
  timestep: number;
  /** What a conditioner gives for the text, without the axis of rows: each is the denoiser's input of its name. */
  conditioning: Tensors;
  guidanceScale: number;
  adapters: LayerAdapters;
  controls?: readonly RowControl[] | undefined;
  /** Pictures that it looks at, if it can. */
  references?: readonly Reference[] | undefined;
}

/** The latents of a picture that is looked at. */
export interface Reference {
  /** [channels, height, width] */
  latents: Float32Array;
  shape: LatentShape;
}

/** A ControlNet, and the picture that a row follows by it. */
export interface RowControl {
  controlNet: { residuals(rows: readonly ControlledRow[], shape: LatentShape): Promise<Tensors> };
  /** [3, height, width] of the picture, from 0 to 1. */
  map: Float32Array;
  scale: number;
}

/** A row as the denoiser sees it, and what it follows. */
export interface ControlledRow extends Pick<RowControl, 'map' | 'scale'> {
  row: DenoiserRow;
}

/** What predicts noise, velocity or the picture of rows; loaded. */
export interface Denoiser extends Pick<GraphSession, 'inputs' | 'spent' | 'release'> {
  /** Rows that a call has for `rows` of pictures. */
  rowsOfCall(rows: number): number;
  /** The prediction of each row, [channels, height, width], for rows of one size, length of text and rank. */
  predict(rows: readonly DenoiserRow[], shape: LatentShape): Promise<Float32Array[]>;
}

/** Kind of model, by what it draws from. */
export type ModelKind = 'text-to-image' | 'inpainting' | 'instruct-pix2pix';

/** Sizes of a step of training. */
export interface StepSizes {
  batch: number;
  /** Of latents. */
  height: number;
  width: number;
  /** Of a text. */
  tokens: number;
}

/** How a denoiser is trained. */
export interface DenoiserTraining {
  /** The graph to which gradients are added. */
  build: BuildGraph;
  /** Paths of the layers that a LoRA adapts: those of attention, or those of feed-forward layers too. */
  layers: Readonly<Record<'attention' | 'all', RegExp>>;
  /** Paths of blocks, whose values are computed again together where they are not kept. */
  blocks: RegExp;
  /** -1 where its graph predicts the opposite of what schedulers want. */
  sign: 1 | -1;
  /** Whether a call is of one row: texts differ in length, and a row alone keeps a device busy. */
  hasOwnCalls: boolean;
  /** Lengths of its inputs' axes that are not called as the sizes are. */
  axesOf(sizes: StepSizes): Readonly<Record<string, number>>;
  /** Its inputs beside latents and texts. @param tokens of a text */
  feedsOf(timesteps: readonly number[], shape: LatentShape, tokens: number): Tensors;
}

/** A denoiser before it is loaded: what its files tell. */
export interface DenoiserFiles extends PartFiles {
  /** Its name in sentences. */
  readonly title: string;
  readonly kind: ModelKind;
  /**
   * How it takes guidance: by a row without the prompt beside each, as an input that it was distilled for, or not at
   * all, because it was distilled to need none.
   */
  readonly guidance: 'rows' | 'input' | 'none';
  /** Edge of the squares of latents that are a token of it; 1 by default. Latents are multiples of it. */
  readonly patch?: number;
  /** Whether it looks at pictures beside the text, and at the one that it draws from, as FLUX.2 does. */
  readonly takesReferences?: boolean;
  /** Edge in pixels of the square pictures that it was trained on, if its configuration tells. */
  readonly nativeSize?: number | undefined;
  /** Absent where it cannot be trained. */
  readonly training?: DenoiserTraining | undefined;
  /**
   * An upper estimate of the bytes that a row of a call takes, without its adapters.
   * @param referencePositions positions of the latents of pictures that it looks at
   */
  rowBytes(latents: { height: number; width: number }, provider: Provider, referencePositions?: number): number;
  open(options: LoadOptions): Promise<Denoiser>;
}

/** How a request is guided. */
export interface Guidance {
  guidanceScale: number;
  /** Of a model that changes pictures, how far the picture counts. */
  imageGuidanceScale?: number;
}

export const defaultImageGuidanceScale = 1.5;

/** Whether a picture has rows without the prompt too. */
export function isGuided(
  { kind, guidance }: Pick<DenoiserFiles, 'kind' | 'guidance'>,
  { guidanceScale, imageGuidanceScale = defaultImageGuidanceScale }: Guidance,
): boolean {
  return guidance === 'rows' && guidanceScale > 1 && !(kind === 'instruct-pix2pix' && imageGuidanceScale < 1);
}

/** Rows that a picture has in a call: with and without the text, and with neither it nor the picture. */
export function rowsOfPicture(files: Pick<DenoiserFiles, 'kind' | 'guidance'>, guidance: Guidance): number {
  if (!isGuided(files, guidance)) return 1;
  return files.kind === 'instruct-pix2pix' ? 3 : 2;
}

/** The axis of an input; undefined if there is no such input. */
export function lengthOf(inputs: readonly ValueFacts[], name: string, axis: number): number | undefined {
  const length = inputs.find((input) => input.name === name)?.shape[axis];
  return length === undefined ? undefined : Number(length);
}
