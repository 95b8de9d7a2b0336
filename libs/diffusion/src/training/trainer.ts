import type { ModelFolder } from '../families/model-folder';
import type { LoadedAdapter } from '../adapters/applied-adapters';
import { writeSafetensors } from '../safetensors/write-safetensors';
import type { LoadOptions } from '../sessions/model-session';
import { NotFiniteError } from '../tensor/planes';
import { AdamW, rateOf } from './adam-w';
import { rowsOfStep, rowsToJudge } from './batch';
import { readCheckpoint, type TrainerState, writeCheckpoint } from './checkpoint';
import { checkPictures, encodeExamples, type Examples, textsOf, type TrainingPicture } from './examples';
import { driftOf, type GateResult, judge } from './gate';
import { type Noising, noisingOf, type TrainingRow } from './noise';
import { type TrainingForm, type TrainingSettings, trainingSettings } from './settings';
import { StepGraphs } from './step-graphs';
import { encodeNamed } from './texts';
import { assertTrainable, readTrainable, type TrainableModel } from './trainable';
import { type TrainedWeights, trainedWeights } from './trained-weights';
import type { TrainingGraph } from './training-graph';

/** Settings of the sessions that a training runs in. */
export type TrainerLoad = Partial<Pick<LoadOptions, 'device' | 'intraOpNumThreads' | 'spinUs' | 'signal'>> & {
  /** The graph that `foreseenBytes` has built for these settings. */
  planned?: TrainingGraph | undefined;
};

/** The outcome of a step. */
export interface TrainingStep {
  /** Steps done, this one too. */
  step: number;
  /** Mean squared error of the step's pictures, before it. */
  loss: number;
}

/** Times at which the picture kept back is judged. */
const timesToJudge = 8;

/**
 * Trains a LoRA of a model, or the embeddings of a word, from pictures. It opens a model, does one step after another,
 * and can be taken up again from a checkpoint, byte for byte, in another process.
 */
export class Trainer {
  private readonly noising: Noising;
  private values: readonly Float32Array[] = [];
  private adam = new AdamW([]);
  private steps = 0;
  private rateFactor = 1;
  private lossAtStart = NaN;

  private constructor(
    private readonly folder: TrainableModel,
    /** All settings, those that were left out too. */
    readonly settings: TrainingSettings,
    private readonly examples: Examples,
    private readonly graphs: StepGraphs,
    private readonly trained: TrainedWeights,
  ) {
    this.noising = noisingOf(folder);
    this.begin();
  }

  private static async of(
    folder: TrainableModel,
    settings: TrainingSettings,
    examples: Examples,
    load: LoadOptions,
    planned?: TrainingGraph,
  ): Promise<Trainer> {
    const graphs = new StepGraphs(folder, settings, load, planned);
    return new Trainer(folder, settings, examples, graphs, await trainedWeights(folder, settings, graphs.trained));
  }

  /**
   * Encodes pictures and captions, draws the prior pictures, and loads the graph that is trained. One of four pictures
   * or more is kept back, to judge by.
   * @param folder the model's, or what was read of it
   * @param settings by default those of the model's `darkroom.json`, or what is usual
   * @throws ModelFolderError, OutOfMemoryError; RequestError for settings or pictures that cannot be trained with
   */
  static async open(
    folder: string | ModelFolder,
    pictures: readonly TrainingPicture[],
    settings: Partial<TrainingSettings> = {},
    { planned, ...load }: TrainerLoad = {},
  ): Promise<Trainer> {
    const model = await readTrainable(folder);
    checkPictures(pictures);
    const complete = trainingSettings(model, pictures.length, settings);
    assertTrainable(model, complete);
    const loaded: LoadOptions = { device: 'cpu', ...load };
    const examples = await encodeExamples(model, pictures, complete, loaded);
    const trainer = await Trainer.of(model, complete, examples, loaded, planned);
    try {
      trainer.lossAtStart = await trainer.heldOutLoss();
    } catch (error) {
      await trainer.release();
      throw error;
    }
    return trainer;
  }

  /**
   * Goes on from a checkpoint, which has settings, encoded pictures, texts, weights and moments.
   * @param folder of the same model, or what was read of it
   * @param load `form` is of the steps that are left; by default they are as those before
   */
  static async resume(
    folder: string | ModelFolder,
    checkpoint: Uint8Array,
    { planned, form, ...load }: TrainerLoad & { form?: TrainingForm | undefined } = {},
  ): Promise<Trainer> {
    const { settings: before, examples, step, rateFactor, lossAtStart, values } = readCheckpoint(checkpoint);
    const model = await readTrainable(folder);
    const loaded: LoadOptions = { device: 'cpu', ...load };
    await encodeNamed(model.conditioner, textsOf(examples), loaded);
    const settings = { ...before, ...(form && { form }) };
    const trainer = await Trainer.of(model, settings, examples, loaded, planned);
    for (const [name, array] of trainer.named()) array.set(values.get(name)!);
    Object.assign(trainer, { steps: step, rateFactor, lossAtStart });
    trainer.adam.step = step;
    return trainer;
  }

  get stepIndex(): number {
    return this.steps;
  }

  get done(): boolean {
    return this.steps >= this.settings.steps;
  }

  /** Does one step. @throws NotFiniteError if the loss is no number: nothing has changed then */
  async step(): Promise<TrainingStep> {
    const { settings, examples, noising, steps } = this;
    const { losses, gradients } = await this.graphs.run(rowsOfStep(examples, noising, settings, steps), this.values);
    const loss = mean(losses);
    if (!Number.isFinite(loss)) throw new NotFiniteError(this.folder.denoiser.title);
    this.adam.update(gradients, this.rateFactor * rateOf(steps, settings));
    return { step: ++this.steps, loss };
  }

  /** A state that another process goes on from: a safetensors file, from some megabytes to over a hundred for XL. */
  checkpoint(): Uint8Array {
    const { settings, steps, rateFactor, lossAtStart, examples } = this;
    const state: TrainerState = { settings, step: steps, rateFactor, lossAtStart, examples, values: this.named() };
    return writeCheckpoint(state);
  }

  /** The mean loss of the picture kept back, or else of the first one, over times and noises that never change. */
  async heldOutLoss(): Promise<number> {
    const example = this.examples.keptBack ?? this.examples.shown[0];
    const rows = await this.judged(rowsToJudge(example, this.noising, timesToJudge));
    return mean(rows.map(({ loss }) => loss));
  }

  /** Judges what was trained: call it once all steps are done. */
  async gate(): Promise<GateResult> {
    const loss = await this.heldOutLoss();
    const { keptPrior } = this.examples;
    const rows = await this.judged(keptPrior.map((row) => ({ ...row, weight: 1 })));
    const drift = driftOf(
      keptPrior.map(({ target }) => target),
      rows.map(({ prediction }) => prediction),
    );
    return judge({ lossAtStart: this.lossAtStart, loss, ...(rows.length > 0 && { drift }) });
  }

  /** Begins again from the base model with this share of the rate, for when the gate was not passed. */
  startOver(rateFactor = 0.5): void {
    this.rateFactor *= rateFactor;
    this.steps = 0;
    this.begin();
  }

  /** The weights as they are by now, for a request of `Pipeline`. */
  adapter(): LoadedAdapter {
    const bytes = this.values.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return { ...this.trained.changes(this.values), bytes };
  }

  /** The weights as a safetensors file in diffusers' names. @param metadata texts to keep in its header */
  weights(metadata: Readonly<Record<string, string>> = {}): Uint8Array {
    const { tensors, metadata: own } = this.trained.file(this.values);
    return writeSafetensors(tensors, { format: 'pt', ...own, ...metadata });
  }

  /** Frees the model's memory; the trainer is of no use afterwards. */
  release(): Promise<void> {
    return this.graphs.release();
  }

  private begin(): void {
    this.values = this.trained.begin();
    this.adam = new AdamW(this.values);
  }

  private named(): Map<string, Float32Array> {
    const of = (prefix: string, arrays: readonly Float32Array[]) =>
      this.graphs.trained.map(({ name }, i) => [prefix + name, arrays[i]] as const);
    const { firstMoments, secondMoments } = this.adam;
    return new Map([...of('', this.values), ...of('first.', firstMoments), ...of('second.', secondMoments)]);
  }

  private async judged(rows: readonly TrainingRow[]): Promise<{ loss: number; prediction: Float32Array }[]> {
    const { batch } = this.settings;
    const judged: { loss: number; prediction: Float32Array }[] = [];
    for (let at = 0; at < rows.length; at += batch) {
      // Rows that fill up the last call are not counted.
      const own = rows.slice(at, at + batch);
      const call = [...own, ...Array<TrainingRow>(batch - own.length).fill(own[0])];
      const { losses, prediction } = await this.graphs.run(call, this.values);
      const size = prediction.length / batch;
      for (const i of own.keys())
        judged.push({ loss: losses[i], prediction: prediction.slice(i * size, (i + 1) * size) });
    }
    return judged;
  }
}

const mean = (values: ArrayLike<number>): number =>
  Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;
