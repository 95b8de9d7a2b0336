import type { Device } from './device';

/** Uploaded weights that are merged into a model before it is loaded. */
export interface FinetuneWeights {
  kind: 'lora' | 'textual_inversion';
  /** Path of the safetensors file on this machine. */
  file: string;
  /** SHA-256 of the file, in hex. */
  hash: string;
  scale: number;
  /** The word that calls a textual inversion. */
  token: string;
}

/** Which weights draw, and where they lie. Everything with the same `key` draws the same pictures. */
export interface ModelSource {
  key: string;
  name: string;
  folder: string;
  /** Content hash of the folder, in hex. */
  hash: string;
  weights?: FinetuneWeights;
}

/** An enlarging model and the long edge in pixels that its pictures must not pass. */
export interface UpscalerSource {
  key: string;
  name: string;
  file: string;
  maxLongEdge: number;
}

/** Pictures to draw: image i has the seed `seed + i`, modulo 2^32. */
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
}

/** Row-major, three bytes (red, green, blue) a pixel. */
export interface RgbPicture {
  width: number;
  height: number;
  data: Uint8Array;
}

/** What a thread is started with. */
export interface EngineSettings {
  device: Device | 'auto';
  /** Threads of one call on the CPU. */
  intraOpNumThreads: number;
  /** Bytes that models and drawing may take; undefined: as much as the device is known to have. */
  memoryBytes?: number;
  /** Folder for optimised graphs and merged models. */
  cacheDir: string;
  /** Bytes of disk that merged models may take; undefined: as many as there are. */
  mergedCacheBytes?: number;
}

/** What the service's thread asks of an engine thread. One drawing at a time. */
export type EngineCommand =
  | {
      type: 'draw';
      id: number;
      model: ModelSource;
      request: DrawRequest;
      upscaler?: UpscalerSource;
      /** One Int32; anything but 0 stops the drawing at its next step. */
      cancel: SharedArrayBuffer;
    }
  | { type: 'close' };

/** Why a drawing ended without pictures. `refused`: it would fail again; its message is fit for the caller. */
export type DrawFailure = 'aborted' | 'refused' | 'broken';

export interface DrawingStarted {
  promptChunks: number;
  /** The one asked for, else the model's own: by the API's name, by diffusers' class name where it has none. */
  scheduler: string;
}

export interface DrawingProgress {
  /** Calls of the U-Net done, of how many for all pictures together. */
  step: number;
  total: number;
  /** Pictures that this call advanced, and how long it took. */
  batch: number;
  stepMs: number;
  /** What the first picture of the batch will look like, now and then: one pixel for one position of the latents. */
  preview?: RgbPicture;
}

export interface ModelLoaded {
  key: string;
  loadMs: number;
  /** Estimate of what the model takes, and of what all loaded models take. */
  modelBytes: number;
  totalBytes: number;
  /** Keys of the models that made room. */
  evicted: string[];
}

/** What an engine thread tells. */
export type EngineReport =
  | { type: 'ready'; device: Device; fallback?: string }
  | ({ type: 'loaded' } & ModelLoaded)
  | ({ type: 'started'; id: number } & DrawingStarted)
  | ({ type: 'progress'; id: number } & DrawingProgress)
  /** A drawing goes on, though there is nothing to tell of it. */
  | { type: 'busy'; id: number }
  | { type: 'picture'; id: number; index: number; picture: RgbPicture; upscaled: boolean }
  | { type: 'done'; id: number; computeMs: number }
  | { type: 'failed'; id: number; failure: DrawFailure; message: string; stack?: string };
