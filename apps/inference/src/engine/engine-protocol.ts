import type { Device, Mask, RgbImage } from '@app/diffusion';

export type { Mask, RgbImage };

/** An adapter that a model is drawn with: the weights of a Fine-Tune. */
export interface AdapterSource {
  kind: 'lora' | 'textual_inversion';
  /** Path of the safetensors file on this machine. */
  file: string;
  /** SHA-256 of the file, in hex. */
  hash: string;
  /** Factor of its effect; 0 switches it off. */
  scale: number;
  /** The word that stands for a textual inversion. */
  token: string;
}

/** An installed model, ControlNet or safety checker, and where it is. */
export interface ModelSource {
  /** Name of the folder and state of its files: a new key once a file has changed. */
  key: string;
  name: string;
  folder: string;
  /** Content hash of the folder, in hex. */
  hash: string;
}

/** A safety checker, and whether what it flags is of no use: that is not upscaled. */
export interface SafetySource extends ModelSource {
  blocks: boolean;
}

/** An upscaler, and the largest long edge of its pictures in pixels. */
export interface UpscalerSource {
  key: string;
  name: string;
  file: string;
  maxLongEdge: number;
}

/** Seed of the i-th picture of a task: seeds wrap around after the largest. */
export const seedOf = (seed: number, index: number): number => (seed + index) % 2 ** 32;

/** Pictures to draw; `seedOf` has the seed of each. */
export interface DrawRequest {
  prompt: string;
  negativePrompt: string | null;
  guidanceScale: number;
  numInferenceSteps: number;
  seed: number;
  numImages: number;
  /** One of the scheduler names of the API; null: the model's own. */
  scheduler: string | null;
  width: number;
  height: number;
  promptWeighting: boolean;
  /** Picture to start from, of the size of the drawing. */
  image?: RgbImage;
  /** Share of the steps that are drawn from `image`: 0 to 1. */
  strength?: number;
  /** Mask of the size of `image`: a byte for each pixel. Pixels of 128 and more are repainted. */
  mask?: Mask;
  control?: readonly ControlRequest[];
  /** Pictures that the model looks at, of whole tokens. */
  references?: readonly RgbImage[];
}

/** A ControlNet, the picture that it follows, its weight, and the part of the steps that it guides (from 0 to 1). */
export interface ControlRequest {
  controlNet: ModelSource;
  image: RgbImage;
  scale: number;
  start: number;
  end: number;
}

/** Options of an engine's thread. `intraOpNumThreads` is the number of threads of a call on the processor. */
export interface ThreadOptions {
  device: Device;
  intraOpNumThreads: number;
  /** Folder for temporary files, which are needed only until a model is loaded. */
  cacheDir: string;
}

/** Start parameters of an engine's thread. */
export interface EngineSettings extends Omit<ThreadOptions, 'device'> {
  device: Device | 'auto';
  /** Bytes that models and calls may take; by default a part of the device's memory. */
  memoryBytes?: number;
}

/** Pictures to be drawn by an engine thread. */
export interface DrawTask {
  /** Id of the API key that asks for it. Owners get equal shares of the device time. */
  owner: string;
  model: ModelSource;
  adapters: readonly AdapterSource[];
  request: DrawRequest;
  upscaler?: UpscalerSource;
  /** Looks at its pictures. */
  safety?: SafetySource;
  id: number;
  /** One Int32. Any value but 0 cancels the task. */
  cancel: SharedArrayBuffer;
}

/** Commands of the service's thread to an engine's thread. A task may come while others are drawn. */
export type EngineCommand =
  | ({ type: 'draw' } & DrawTask)
  /** Memory to leave to another process, a training. It replaces the value of the command before. */
  | { type: 'reserve'; bytes: number }
  | { type: 'close' };

/** How a drawing failed. */
export interface Failure {
  /** `aborted`: canceled. `refused`: it would fail again. `broken`: a retry may succeed. */
  failure: 'aborted' | 'refused' | 'broken';
  /** If `refused`, one plain sentence for the caller, without a path of this machine. Else a text for the log. */
  message: string;
  /** Faults of the installed model, a line each, if no drawing with it can succeed. */
  problem?: string;
  outOfMemory?: true;
  stack?: string;
}

export interface DrawingStarted {
  promptChunks: number;
  /** Scheduler in use: the API's name for it, or diffusers' class name if the API has none. */
  scheduler: string;
}

export interface DrawingProgress {
  /** Steps done: the mean of its pictures. */
  step: number;
  total: number;
  /** Preview of its first picture that has steps left, sent now and then: a pixel for each position of the latents. */
  preview?: RgbImage;
}

/** A call of the denoiser: the numbers of drawings, pictures and rows in it, and how long it took. */
export interface EngineStep {
  drawings: number;
  pictures: number;
  rows: number;
  stepMs: number;
}

export interface ModelLoaded {
  /** Key of the model. `+` and the kind, hash and scale follow of each adapter that changes its weights. */
  key: string;
  loadMs: number;
  /** Estimated memory of the model, and of all loaded models. */
  modelBytes: number;
  totalBytes: number;
}

/** Messages from an engine thread. */
export type EngineMessage =
  /** A line for the log. */
  | { type: 'note'; text: string }
  /** The thread has its device, on which models and calls may take this many bytes. */
  | { type: 'ready'; device: Device; memoryBytes: number }
  /** The device of the settings cannot be used, and the thread ends. */
  | { type: 'unavailable'; reason: string }
  | ({ type: 'loaded' } & ModelLoaded)
  | { type: 'released'; key: string }
  /** The other process may take its memory: it is free, or all tasks that ran have ended. */
  | { type: 'reserved'; bytes: number }
  | ({ type: 'started'; id: number } & DrawingStarted)
  | ({ type: 'stepped' } & EngineStep)
  | ({ type: 'progress'; id: number } & DrawingProgress)
  /** A task is being worked on. It is sent because the service takes a long silence for a hung thread. */
  | { type: 'busy'; id: number }
  | { type: 'picture'; id: number; index: number; picture: RgbImage; upscaled: boolean; flagged: boolean }
  | { type: 'done'; id: number; computeMs: number }
  /** `computeMs`: what it had used until it was canceled. */
  | ({ type: 'failed'; id: number; computeMs?: number } & Failure);
