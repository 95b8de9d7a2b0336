import type { Device, RgbImage, TrainingDefaults, TrainingPicture, TrainingSettings } from '@app/diffusion';
import type { ModelSource, Failure } from '../engine/engine-protocol';

/** Orders to a training process: first to say how it would train, then to do it, or to go on. */
export type TrainingCommand =
  | {
      type: 'plan';
      /** The model that is trained. */
      model: ModelSource;
      /** The folder of the model that draws with the result, and what its `darkroom.json` says, if it is another. */
      drawn?: { folder: string; training: TrainingDefaults | undefined } | undefined;
      device: Device;
      intraOpNumThreads: number;
      pictures: number;
      settings: Partial<TrainingSettings>;
      memoryBytes: number;
      /** Bytes of those that a drawing model takes, which are left to it where that is possible. */
      drawingBytes?: number;
      /** The state that it goes on from, if it has begun. */
      checkpoint?: Uint8Array | undefined;
      /** Whether samples are drawn on the way, where there is room. */
      hasSamples: boolean;
    }
  | { type: 'train'; pictures: readonly TrainingPicture[]; samplePrompt: string; metadata: Record<string, string> }
  /** To go on from the checkpoint that was planned with. */
  | { type: 'resume'; round: number; samplePrompt: string; metadata: Record<string, string> }
  /** To end after this step, with a checkpoint. */
  | { type: 'stop' };

/** How a model is trained on this machine. */
export interface TrainingPlan {
  /** Edge in pixels of the pictures. */
  size: number;
  bytes: number;
  /** Its differences from how the model would be trained with more memory, for people. */
  note: string | null;
}

/** One step, and the time that all of them took so far in this process. */
export interface TrainingAdvance {
  /** 0, or 1 where it is trained once more with half of the rate. */
  round: number;
  step: number;
  steps: number;
  loss: number;
  computeMs: number;
}

/** A state that another process goes on from. */
export interface TrainingState extends TrainingAdvance {
  checkpoint: Uint8Array;
}

/** Facts of the weights that came of it, as they were read again. */
export interface TrainedWeights {
  kind: 'lora' | 'textual_inversion';
  /** Embeddings of a textual inversion. */
  vectors: number | null;
  note: string | null;
}

/** Messages of a training process. */
export type TrainingMessage =
  | { type: 'ready' }
  | ({ type: 'planned' } & TrainingPlan)
  | ({ type: 'stepped' } & TrainingAdvance)
  | ({ type: 'kept' } & TrainingState)
  | { type: 'sampled'; image: RgbImage }
  | { type: 'stopped' }
  | ({ type: 'done'; weights: Uint8Array; computeMs: number } & TrainedWeights)
  | ({ type: 'failed' } & Failure);
