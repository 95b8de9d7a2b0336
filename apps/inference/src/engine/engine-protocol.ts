import type { Device } from '@app/diffusion';

/** Uploaded weights that a model is drawn with. */
export interface FinetuneWeights {
  kind: 'lora' | 'textual_inversion';
  /** Path of the safetensors file on this machine. */
  file: string;
  /** SHA-256 of the file, in hex. */
  hash: string;
  scale: number;
  /** The word that stands for a textual inversion. */
  token: string;
}

/** An installed model, and where it is. */
export interface DrawnModel {
  /** Of the folder in the state of its files. */
  key: string;
  name: string;
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
  /** A picture to start from, of this size, and the share of the steps that is drawn of it. */
  image?: RgbPicture;
  strength?: number;
  /** The part of it that is repainted, of this size: a byte for each pixel, from 128 on. */
  mask?: { width: number; height: number; values: Uint8Array };
  control?: readonly ControlRequest[];
}

/** A ControlNet, the map that it follows, and how. */
export interface ControlRequest {
  model: DrawnModel;
  image: RgbPicture;
  scale: number;
  start: number;
  end: number;
}

/** Row-major, three bytes (red, green, blue) per pixel. */
export interface RgbPicture {
  width: number;
  height: number;
  data: Uint8Array;
}

/** Start parameters of a thread. */
export interface EngineSettings {
  device: Device | 'auto';
  /** Threads of one call on the CPU. */
  intraOpNumThreads: number;
  /** Bytes for models and drawing; undefined: depends on the device's memory. */
  memoryBytes?: number;
  /** Folder for files that last as long as a model is being loaded. */
  cacheDir: string;
}

/** Pictures to be drawn by an engine thread. */
export interface DrawTask {
  /** The key that it is of: owners have equal parts of the engine's time. */
  owner: string;
  model: DrawnModel;
  /** The Fine-Tunes of the model; none: the model itself. */
  adapters: readonly FinetuneWeights[];
  request: DrawRequest;
  upscaler?: UpscalerSource;
  id: number;
  /** One Int32; anything but 0 stops the drawing at its next step. */
  cancel: SharedArrayBuffer;
}

/** Commands of the service's thread to an engine's thread. Any number of tasks may be there at once. */
export type EngineCommand =
  | ({ type: 'draw' } & DrawTask)
  /** To leave so many bytes of its memory to a process that trains, in place of those of the command before. */
  | { type: 'cede'; bytes: number }
  | { type: 'close' };

/** How a drawing failed. */
export interface Failure {
  /** `refused`: it would fail again; its message may be shown to the caller. */
  failure: 'aborted' | 'refused' | 'broken';
  /** One plain sentence without a path of this machine, suitable for the caller. */
  message: string;
  /** The fault of the installed model, in one sentence, if no drawing with it can succeed. */
  problem?: string;
  /** Whether it broke for want of memory. */
  outOfMemory?: true;
  stack?: string;
}

export interface DrawingStarted {
  promptChunks: number;
  /** The scheduler in use: by the API's name, or by diffusers' class name if it has none. */
  scheduler: string;
}

export interface DrawingProgress {
  /** Steps done, averaged over its pictures. */
  step: number;
  total: number;
  /** A preview of its first picture that is not done, now and then: one pixel for a position of the latents. */
  preview?: RgbPicture;
}

/** One call of the U-Net: what it advanced, and how long it took. */
export interface EngineStep {
  drawings: number;
  pictures: number;
  rows: number;
  stepMs: number;
}

export interface ModelLoaded {
  /** Of a model; where a Fine-Tune has changed its weights, followed by `+` and what names that. */
  key: string;
  loadMs: number;
  /** Estimated memory of the model, and of all loaded models. */
  modelBytes: number;
  totalBytes: number;
}

/** Messages from an engine thread. */
export type EngineMessage =
  /** To be logged: about the choice of the device. */
  | { type: 'note'; text: string }
  | { type: 'ready'; device: Device; /** Bytes that models and drawing may take. */ memoryBytes: number }
  /** The device that was asked for cannot be used: the thread ends. */
  | { type: 'unavailable'; reason: string }
  | ({ type: 'loaded' } & ModelLoaded)
  /** A model made room for another, or for drawing. */
  | { type: 'released'; key: string }
  /** So many bytes are left to a process that trains: they are free, or all has ended that was drawn when it asked. */
  | { type: 'ceded'; bytes: number }
  | ({ type: 'started'; id: number } & DrawingStarted)
  | ({ type: 'stepped' } & EngineStep)
  | ({ type: 'progress'; id: number } & DrawingProgress)
  /** A drawing is making progress, without anything else to report. */
  | { type: 'busy'; id: number }
  | { type: 'picture'; id: number; index: number; picture: RgbPicture; upscaled: boolean }
  | { type: 'done'; id: number; computeMs: number }
  | ({ type: 'failed'; id: number } & Failure);
