import type { Device } from './device';

/** Uploaded weights to merge into a model before it is loaded. */
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

/** The weights of a drawing, and where they are. Equal `key`s draw equal pictures. */
export interface ModelSource {
  key: string;
  name: string;
  folder: string;
  /** Content hash of the folder, in hex. */
  hash: string;
  weights?: FinetuneWeights;
}

/** An upscaler, and the largest long edge of its pictures in pixels. */
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
  /** Folder for optimised graphs and merged models. */
  cacheDir: string;
  /** Bytes of disk for merged models; undefined: unlimited. */
  mergedCacheBytes?: number;
}

/** Messages from the main thread to an engine thread. One drawing at a time. */
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

/** Why a drawing failed. `refused`: it would fail again; its message may be shown to the caller. */
export type DrawFailure = 'aborted' | 'refused' | 'broken';

export interface DrawingStarted {
  promptChunks: number;
  /** The scheduler in use: by the API's name, or by diffusers' class name if it has none. */
  scheduler: string;
}

export interface DrawingProgress {
  /** Calls of the U-Net so far, and in total for all pictures. */
  step: number;
  total: number;
  /** Number of pictures in this call, and its duration. */
  batch: number;
  stepMs: number;
  /** A preview of the batch's first picture, in some messages: one pixel per position of the latents. */
  preview?: RgbPicture;
}

export interface ModelLoaded {
  key: string;
  loadMs: number;
  /** Estimated memory of the model, and of all loaded models. */
  modelBytes: number;
  totalBytes: number;
  /** Keys of the models that were released to make room. */
  evicted: string[];
}

/** Messages from an engine thread. */
export type EngineReport =
  | { type: 'ready'; device: Device; fallback?: string }
  | ({ type: 'loaded' } & ModelLoaded)
  | ({ type: 'started'; id: number } & DrawingStarted)
  | ({ type: 'progress'; id: number } & DrawingProgress)
  /** A drawing is making progress, without anything else to report. */
  | { type: 'busy'; id: number }
  | { type: 'picture'; id: number; index: number; picture: RgbPicture; upscaled: boolean }
  | { type: 'done'; id: number; computeMs: number }
  | { type: 'failed'; id: number; failure: DrawFailure; message: string; stack?: string };
