import type { Device, RgbImage, TrainingPicture, TrainingSettings } from '@app/diffusion';

/** What a training process is asked for: first how it would train, then to do it, or to go on. */
export type TrainingCommand =
  | {
      type: 'plan';
      /** Of the model. */
      folder: string;
      device: Device;
      intraOpNumThreads: number;
      /** Pictures that it would be trained from. */
      pictures: number;
      settings: Partial<TrainingSettings>;
      /** Bytes that it may take. */
      memoryBytes: number;
      /** What it goes on from, if it has begun. */
      checkpoint?: Uint8Array | undefined;
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
  /** Bytes that it takes. */
  bytes: number;
  /** What is otherwise than the model would have it, for people. */
  note: string | null;
}

/** One step, and what all of them took so far in this process. */
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

/** What a training process says. */
export type TrainingMessage =
  | { type: 'ready' }
  | ({ type: 'planned' } & TrainingPlan)
  | ({ type: 'stepped' } & TrainingAdvance)
  | ({ type: 'kept' } & TrainingState)
  | { type: 'sampled'; image: RgbImage }
  | { type: 'stopped' }
  | { type: 'done'; weights: Uint8Array; kind: 'lora' | 'textual_inversion'; note: string | null; computeMs: number }
  /** `refused`: it would fail again; the message may be shown to the caller. */
  | { type: 'failed'; failure: 'refused' | 'broken'; message: string; computeMs: number };
