import { timeIdsOf } from '../denoisers/unet';
import { type LoadOptions, ModelSession } from '../sessions/model-session';
import { placeGraph } from '../sessions/placed-graph';
import { float32, floatsOf, int64, packed, type Tensor } from '../sessions/tensor';
import { sizeOf, type TrainingRow } from './batch';
import type { TrainingSettings } from './settings';
import type { TextStates, TokenizedText } from './texts';
import type { TrainableModel } from './trainable';
import {
  isFor,
  mayCopyWeights,
  names,
  type TrainedInput,
  trainedInputsOf,
  type TrainingGraph,
  trainingGraph,
} from './training-graph';

/** Results of a call of the training graph. */
export interface StepResults {
  /** Mean squared error of each row. */
  losses: Float32Array;
  prediction: Float32Array;
  gradients: readonly Float32Array[];
}

/** The training graph of a model, loaded for each size of pictures that is met. */
export class StepGraphs {
  private readonly sessions = new Map<string, ModelSession>();

  /** Inputs of the graph beside those of the rows. */
  readonly trained: readonly TrainedInput[];

  /**
   * @param scaleFactor pixels of the picture's edge for one of the latents'
   * @param planned of this model and these settings; one of others is not used
   */
  constructor(
    private readonly folder: TrainableModel,
    private readonly settings: TrainingSettings,
    private readonly load: LoadOptions,
    private readonly scaleFactor: number,
    private planned?: TrainingGraph,
  ) {
    this.trained = trainedInputsOf(folder, settings);
  }

  /** @param rows of one size, as many as a batch has */
  async run(rows: readonly TrainingRow[], values: readonly Float32Array[]): Promise<StepResults> {
    const session = await this.sessionOf(rows[0]);
    const [{ shape }] = rows;
    const tensor = (of: (row: TrainingRow) => ArrayLike<number>, each: readonly number[]): Tensor =>
      packed(rows, of, each);
    const all: Record<string, () => Tensor> = {
      sample: () => tensor(({ sample }) => sample, shape),
      [names.target]: () => tensor(({ target }) => target, shape),
      [names.lossWeight]: () => tensor(({ weight }) => [weight], []),
      timestep: () => tensor(({ timestep }) => [timestep], []),
      encoder_hidden_states: () => {
        const width = Number(session.inputs.find(({ name }) => name === 'encoder_hidden_states')!.shape[2]);
        return tensor((row) => encoded(row).states, [encoded(rows[0]).states.length / width, width]);
      },
      text_embeds: () => tensor((row) => encoded(row).pooled!, [encoded(rows[0]).pooled!.length]),
      [names.textScale]: () => tensor((row) => [tokenized(row).scale], []),
      time_ids: () => tensor(() => timeIdsOf(shape, this.scaleFactor), [6]),
    };
    for (const [i, { part }] of this.folder.conditioner.encoders.entries())
      all[names.tokensOf(part)] = () => {
        const ids = rows.flatMap((row) => Array.from(tokenized(row).ids[i], BigInt));
        return int64(BigInt64Array.from(ids), [rows.length, ids.length / rows.length]);
      };
    const feeds: Record<string, Tensor> = {};
    for (const { name } of session.inputs) if (all[name]) feeds[name] = all[name]();
    for (const [i, { name, shape: own }] of this.trained.entries()) feeds[name] = float32(values[i], own);
    const results = await session.run(feeds);
    const of = (name: string): Float32Array => floatsOf(results[name]);
    return {
      losses: of(names.loss),
      prediction: of(names.prediction),
      gradients: this.trained.map(({ name }) => of(names.gradientOf(name))),
    };
  }

  async release(): Promise<void> {
    await Promise.all([...this.sessions.values()].map((session) => session.release()));
    this.sessions.clear();
  }

  private async sessionOf(row: TrainingRow): Promise<ModelSession> {
    const size = sizeOf(row);
    const known = this.sessions.get(size);
    if (known) return known;
    const { folder, settings, planned } = this;
    const [, height, width] = row.shape;
    const sizes = { batch: settings.batch, height, width, tokens: folder.conditioner.rowTokens };
    const { graph } =
      planned && isFor(planned, { ...settings, ...sizes }) ? planned : trainingGraph(folder, settings, sizes);
    this.planned = undefined;
    const placed = placeGraph(graph, folder.denoiser.file);
    const session = await ModelSession.open(placed, { ...this.load, sparesMemory: !mayCopyWeights(graph) });
    this.sessions.set(size, session);
    return session;
  }
}

const encoded = ({ text }: TrainingRow): TextStates => text as TextStates;
const tokenized = ({ text }: TrainingRow): TokenizedText => text as TokenizedText;
