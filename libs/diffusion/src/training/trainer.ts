import type { LoadedAdapter } from '../pipelines/applied-adapters';
import type { LoadOptions } from '../sessions/model-session';
import type { RgbImage } from '../tensor/planes';
import type { GateResult } from './gate';
import type { TrainingSettings } from './settings';

/** A picture of what is to be learnt; its edges are multiples of 64 pixels. */
export interface TrainingPicture {
  image: RgbImage;
  /** What it shows, with the word that will stand for it: `a photo of zwx robot`. */
  caption: string;
}

/** Where and how a training runs. */
export type TrainerLoad = Partial<Pick<LoadOptions, 'device' | 'intraOpNumThreads' | 'spinUs' | 'signal'>>;

/** What a step gave. */
export interface TrainingStep {
  /** Steps done, this one too. */
  step: number;
  /** Mean squared error of the step's pictures, before it. */
  loss: number;
}

/**
 * Trains a LoRA of a model from pictures. It opens a model, does one step after another, and can be taken up again from
 * a checkpoint, byte for byte, in another process.
 */
export class Trainer {
  private constructor(
    /** All settings, those that were left out too. */
    readonly settings: TrainingSettings,
    /** Steps done. */
    public stepIndex: number,
  ) {}

  /**
   * Encodes pictures and captions, draws the prior pictures, and loads the graph that is trained. One of four pictures
   * or more is kept back, to judge by.
   * @param settings by default those of the model's `darkroom.json`, or what is usual
   * @throws ModelFolderError, OutOfMemoryError; RequestError for settings or pictures that cannot be trained with
   */
  static open(
    _folder: string,
    _pictures: readonly TrainingPicture[],
    _settings: Partial<TrainingSettings> = {},
    _load: TrainerLoad = {},
  ): Promise<Trainer> {
    return Promise.reject(new Error('Training is not built yet.'));
  }

  /**
   * Goes on from a checkpoint, which has settings, encoded pictures and texts, weights and moments.
   * @param folder of the same model
   */
  static resume(_folder: string, _checkpoint: Uint8Array, _load: TrainerLoad = {}): Promise<Trainer> {
    return Promise.reject(new Error('Training is not built yet.'));
  }

  get done(): boolean {
    return this.stepIndex >= this.settings.steps;
  }

  /** Does one step. @throws NotFiniteError if the loss is no number: nothing has changed then */
  step(): Promise<TrainingStep> {
    return Promise.reject(new Error('Training is not built yet.'));
  }

  /** What another process goes on from; a safetensors file, of some megabytes. */
  checkpoint(): Uint8Array {
    throw new Error('Training is not built yet.');
  }

  /** The mean loss of the picture kept back, over times and noises that are always the same. */
  heldOutLoss(): Promise<number> {
    return Promise.reject(new Error('Training is not built yet.'));
  }

  /** Judges what was trained: call it once all steps are done. */
  gate(): Promise<GateResult> {
    return Promise.reject(new Error('Training is not built yet.'));
  }

  /** Begins again from the base model with this share of the rate, for when the gate was not passed. */
  startOver(_rateFactor = 0.5): void {
    throw new Error('Training is not built yet.');
  }

  /** What was learnt so far, for a request of `StableDiffusionPipeline`. */
  adapter(): LoadedAdapter {
    throw new Error('Training is not built yet.');
  }

  /** The LoRA as a safetensors file in diffusers' names. @param metadata texts to keep in its header */
  weights(_metadata: Readonly<Record<string, string>> = {}): Uint8Array {
    throw new Error('Training is not built yet.');
  }

  /** Frees the model's memory; the trainer is of no use afterwards. */
  async release(): Promise<void> {
    return Promise.reject(new Error('Training is not built yet.'));
  }
}
