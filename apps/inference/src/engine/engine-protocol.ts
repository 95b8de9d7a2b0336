import type { Device, RgbImage as RgbPicture } from '@app/diffusion';

export type { RgbPicture };

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

/** An installed model or ControlNet, and where it is. */
export interface ModelSource {
  /** Name of the folder and the state of its files: another one once a file has changed. */
  key: string;
  name: string;
  /** Path of its folder on this machine. */
  folder: string;
  /** Content hash of the folder, in hex. */
  hash: string;
}

/** An upscaler, and the largest long edge of its pictures in pixels. */
export interface UpscalerSource {
  key: string;
  name: string;
  file: string;
  maxLongEdge: number;
}

/** Pictures to draw: picture i has the seed `seed + i`, modulo 2^32. */
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
  image?: RgbPicture;
  /** Share of the steps that are drawn from `image`: 0 to 1. */
  strength?: number;
  /** Part of `image` that is repainted, of its size: a byte for each pixel, and those of 128 and more are. */
  mask?: { width: number; height: number; values: Uint8Array };
  control?: readonly ControlRequest[];
}

/** A ControlNet, and the map that it follows: with which weight, and from which to which part of the steps (0 to 1). */
export interface ControlRequest {
  controlNet: ModelSource;
  image: RgbPicture;
  scale: number;
  start: number;
  end: number;
}

/** Device, threads of a call on the processor, and folder of an engine's thread. */
export interface ThreadOptions {
  device: Device;
  intraOpNumThreads: number;
  /** Folder for files that are needed only while a model is loaded. */
  cacheDir: string;
}

/** Start parameters of an engine's thread. */
export interface EngineSettings extends Omit<ThreadOptions, 'device'> {
  device: Device | 'auto';
  /** Bytes that models and drawing may take; by default a part of the device's memory. */
  memoryBytes?: number;
}

/** Pictures to be drawn by an engine thread. */
export interface DrawTask {
  /** The API key that asks for it. Owners have equal parts of the device's time. */
  owner: string;
  model: ModelSource;
  /** Without any, the model draws by itself. */
  adapters: readonly AdapterSource[];
  request: DrawRequest;
  upscaler?: UpscalerSource;
  id: number;
  /** One Int32, which cancels the task when it is not 0. */
  cancel: SharedArrayBuffer;
}

/** Commands of the service's thread to an engine's thread. A task may come while others are drawn. */
export type EngineCommand =
  | ({ type: 'draw' } & DrawTask)
  /** Memory to leave to another process, a training. It takes the place of the memory of the command before. */
  | { type: 'cede'; bytes: number }
  | { type: 'close' };

/** How a drawing failed. */
export interface Failure {
  /** `aborted`: canceled. `refused`: it would fail again. `broken`: a retry may succeed. */
  failure: 'aborted' | 'refused' | 'broken';
  /** If `refused`, one plain sentence for the caller, without a path of this machine. Else a text for the log. */
  message: string;
  /** Faults of the installed model, a line each, if no drawing with it can succeed. */
  problem?: string;
  /** Whether memory ran out. */
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
  /** Preview of its first picture that is not done, sent now and then: a pixel for each position of the latents. */
  preview?: RgbPicture;
}

/** A call of the U-Net: the numbers of drawings, pictures and rows in it, and how long it took. */
export interface EngineStep {
  drawings: number;
  pictures: number;
  rows: number;
  stepMs: number;
}

export interface ModelLoaded {
  /** Key of the model. If an adapter changes its weights, `+` and the adapter's kind, hash and scale follow. */
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
  /** The thread has its device, on which models and drawing may take so many bytes. */
  | { type: 'ready'; device: Device; memoryBytes: number }
  /** The device of the settings cannot be used, and the thread ends. */
  | { type: 'unavailable'; reason: string }
  | ({ type: 'loaded' } & ModelLoaded)
  /** A model made room for another, or for drawing. */
  | { type: 'released'; key: string }
  /** Memory is left to another process: it is free, or all drawings have ended that were under way at the command. */
  | { type: 'ceded'; bytes: number }
  | ({ type: 'started'; id: number } & DrawingStarted)
  | ({ type: 'stepped' } & EngineStep)
  | ({ type: 'progress'; id: number } & DrawingProgress)
  /** A task is being worked on, without anything else to report; the service takes long silence for a hung thread. */
  | { type: 'busy'; id: number }
  | { type: 'picture'; id: number; index: number; picture: RgbPicture; upscaled: boolean }
  | { type: 'done'; id: number; computeMs: number }
  | ({ type: 'failed'; id: number } & Failure);
