import type { AutoencoderFiles } from '../autoencoders/autoencoder';
import type { ConditionerFiles } from '../conditioners/conditioner';
import type { DenoiserFiles } from '../denoisers/denoiser';
import type { RunSize } from '../schedulers/scheduler';
import type { SchedulerJson } from '../schedulers/scheduler-config';
import type { PartName, PartTensors } from '../weights/original-names';
import type { JsonObject } from '../weights/folder-files';
import type { ModelDefaults } from './model-defaults';

/** The weights of a model folder. */
export interface ModelWeights {
  tensors: PartTensors;
  /** Path of each part's weights, for messages. */
  files: ReadonlyMap<PartName, string>;
  /** Whether they are one file in the names of the original programs, with nothing beside it that describes them. */
  isCheckpoint: boolean;
  /** Names of tensors without a part, by which a checkpoint says what it is. */
  marks: ReadonlySet<string>;
}

/** What was read of a model's folder, of which a family makes its parts. */
export interface ReadFiles extends ModelWeights {
  path: string;
  index: JsonObject | undefined;
  /** The `config.json` of each part that has one. */
  configs: ReadonlyMap<PartName, JsonObject>;
  defaults: ModelDefaults;
  /** Its own, else that of the family. */
  schedulerJson: SchedulerJson;
}

/** What a request may ask for, and not every model can do. */
export type Ability =
  'cfg' | 'control' | 'negative_prompt' | 'prompt_weighting' | 'references' | 'textual_inversion' | 'training';

/** How a model is described of which there are weights alone. */
export interface DescribedFiles {
  /** Whether it was distilled to draw in a few steps, which no weight tells, by the name of its file. */
  isDistilled: (name: string) => boolean;
  /** The JSON files of its folder, by their paths. */
  filesOf: (tensors: PartTensors, isDistilled: boolean) => Record<string, JsonObject>;
}

/**
 * What the models of a family have in common. It names a denoiser, a conditioner, an autoencoder and a scheduler, each
 * from what was read of a model's files, whose own values count more.
 */
export interface Family {
  readonly name: string;
  /** Its name in sentences. */
  readonly title: string;
  /** Pipelines of diffusers and optimum, by the `_class_name` of a `model_index.json`, whose parts these are. */
  readonly pipelines: RegExp;
  /** Parts that a model has, and how each is called in sentences. */
  readonly parts: Readonly<Record<PartName, string>>;
  /** The part that predicts. */
  readonly denoiserPart: PartName;
  /** Edge in pixels of the square pictures that it was trained on. */
  readonly nativeSize: number;
  /** Channels of the latents that a model predicts, which its autoencoder has to have too; by its weights. */
  readonly latentChannels?: (tensors: PartTensors) => number | undefined;
  /** Width of the states of a layer of the text encoder that a model reads, by its weights. */
  readonly textWidth?: (tensors: PartTensors) => number | undefined;
  /** What describes a model that comes as files of its parts, with nothing beside them. */
  readonly described?: DescribedFiles;
  /** The scheduler of a model that comes without one, and values that count more than a model's own. */
  readonly scheduler: { usual: SchedulerJson; fixed: SchedulerJson };
  /**
   * Names of weights that a model in int8 has in float, where errors count most: of the first layers, the last, and those
   * of a single vector.
   */
  readonly keptInFloat: RegExp;
  /** Whether a model is one of it, by the names and shapes of its tensors. */
  recognises(files: Pick<ReadFiles, 'tensors' | 'marks' | 'configs'>): boolean;
  /** The parts of a model before they are loaded. @throws ModelFolderError */
  partsOf(files: ReadFiles): Promise<ModelParts>;
}

/** The roles that the parts of a model have, and what follows from them. */
export interface ModelParts {
  denoiser: DenoiserFiles;
  conditioner: ConditionerFiles;
  autoencoder: AutoencoderFiles;
  /** What the model cannot do, each with a sentence that says so. */
  cannot: Readonly<Partial<Record<Ability, string>>>;
  /** Values that it is drawn with where neither a request nor its `darkroom.json` says. */
  usual?: Pick<ModelDefaults, 'steps' | 'cfg'>;
  /** How its noise levels are shifted for a picture, where its scheduler shifts them by size. */
  muOf?: RunSize['muOf'];
}
