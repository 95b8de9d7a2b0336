import { type LoadOptions, ModelSession } from '../sessions/model-session';
import { placeGraph } from '../sessions/placed-graph';
import { bool, float32, floatsOf, int64, packed, type Tensor } from '../sessions/tensor';
import { sizeOf } from './batch';
import type { TrainingRow } from './noise';
import type { TrainingSettings } from './settings';
import type { EncodedText, TokenizedText, TrainingText } from './texts';
import { type TrainableModel, trainedEncodersOf } from './trainable';
import {
  isFor,
  mayCopyWeights,
  names,
  rowsOfCall,
  type TrainedInput,
  trainedInputsOf,
  type TrainingGraph,
  trainingGraph,
} from './training-graph';

/** Results of rows. */
export interface StepResults {
  /** Mean squared error of each row. */
  losses: Float32Array;
  prediction: Float32Array;
  gradients: readonly Float32Array[];
}

/** The training graph of a model, loaded for each size of pictures and texts that is met. */
export class StepGraphs {
  private readonly sessions = new Map<string, ModelSession>();

  /** Inputs of the graph beside those of the rows. */
  readonly trained: readonly TrainedInput[];

  /** @param planned of this model and these settings; one of others is not used */
  constructor(
    private readonly folder: TrainableModel,
    private readonly settings: TrainingSettings,
    private readonly load: LoadOptions,
    private planned?: TrainingGraph,
  ) {
    this.trained = trainedInputsOf(folder, settings);
  }

  /**
   * A graph is opened once at most for each length of texts, and one that is open is used first; the results are those
   * of the rows in their order.
   * @param rows of one size, as many as a batch has
   */
  async run(rows: readonly TrainingRow[], values: readonly Float32Array[]): Promise<StepResults> {
    const count = rowsOfCall(this.folder, this.settings);
    const calls = Array.from({ length: rows.length / count }, (_, i) => rows.slice(i * count, (i + 1) * count));
    const isOpen = (key: string): number => Number(this.sessions.has(key));
    const keys = [...new Set(calls.map(([row]) => this.keyOf(row)))].sort((a, b) => isOpen(b) - isOpen(a));
    const results: StepResults[] = [];
    for (const key of keys)
      for (const [i, call] of calls.entries())
        if (this.keyOf(call[0]) === key) results[i] = await this.call(call, values);
    return results.length === 1 ? results[0] : joined(results);
  }

  async release(): Promise<void> {
    await Promise.all([...this.sessions.values()].map((session) => session.release()));
    this.sessions.clear();
  }

  private async call(rows: readonly TrainingRow[], values: readonly Float32Array[]): Promise<StepResults> {
    const session = await this.sessionOf(rows[0]);
    const { sign } = this.folder.denoiser.training;
    const all = this.feedsOf(rows);
    const feeds = Object.fromEntries(
      session.inputs.flatMap(({ name, type }) => (all[name] ? [[name, inType(all[name], type)] as const] : [])),
    );
    for (const [i, { name, shape }] of this.trained.entries()) feeds[name] = float32(values[i], shape);
    const results = await session.run(feeds);
    const of = (name: string): Float32Array => floatsOf(results[name]);
    const prediction = of(names.prediction);
    return {
      losses: of(names.loss),
      prediction: sign === 1 ? prediction : prediction.map((value) => -value),
      gradients: this.trained.map(({ name }) => of(names.gradientOf(name))),
    };
  }

  /** Inputs of a call by name; a graph need not have all of them. */
  private feedsOf(rows: readonly TrainingRow[]): Record<string, Tensor> {
    const { training } = this.folder.denoiser;
    const [{ shape, text }] = rows;
    const timesteps = rows.map(({ timestep }) => timestep);
    const tensor = (of: (row: TrainingRow) => ArrayLike<number>, each: readonly number[]): Tensor =>
      packed(rows, of, each);
    return {
      sample: tensor(({ sample }) => sample, shape),
      [names.target]: tensor(({ target }) => target.map((value) => training.sign * value), shape),
      [names.lossWeight]: tensor(({ weight }) => [weight], []),
      ...training.feedsOf(timesteps, shape, this.tokensOf(text)),
      ...('ids' in text ? this.tokenFeeds(rows) : encodedFeeds(rows)),
    };
  }

  private tokenFeeds(rows: readonly TrainingRow[]): Record<string, Tensor> {
    const texts = rows.map(({ text }) => text as TokenizedText);
    const feeds: Record<string, Tensor> = { [names.textScale]: packed(texts, ({ scale }) => [scale], []) };
    for (const [i, { part }] of trainedEncodersOf(this.folder.conditioner).encoders.entries()) {
      const ids = texts.flatMap((text) => Array.from(text.ids[i], BigInt));
      feeds[names.tokensOf(part)] = int64(BigInt64Array.from(ids), [rows.length, ids.length / rows.length]);
    }
    return feeds;
  }

  private tokensOf(text: TrainingText): number {
    return 'ids' in text ? this.folder.conditioner.rowTokens : text.inputs.encoder_hidden_states.dims[0];
  }

  private keyOf(row: TrainingRow): string {
    return `${sizeOf(row)} ${this.tokensOf(row.text)}`;
  }

  private async sessionOf(row: TrainingRow): Promise<ModelSession> {
    const tokens = this.tokensOf(row.text);
    const key = this.keyOf(row);
    const known = this.sessions.get(key);
    if (known) return known;
    const { folder, settings, planned } = this;
    // Each would hold the memory of a step.
    if (folder.denoiser.training.hasOwnCalls) await this.release();
    const [, height, width] = row.shape;
    const sizes = { batch: rowsOfCall(folder, settings), height, width, tokens };
    const { graph } =
      planned && isFor(planned, { ...settings, ...sizes }) ? planned : trainingGraph(folder, settings, sizes);
    this.planned = undefined;
    const placed = placeGraph(graph, folder.denoiser.file);
    const session = await ModelSession.open(placed, { ...this.load, sparesMemory: !mayCopyWeights(graph) });
    this.sessions.set(key, session);
    return session;
  }
}

function encodedFeeds(rows: readonly TrainingRow[]): Record<string, Tensor> {
  const texts = rows.map(({ text }) => (text as EncodedText).inputs);
  const feeds = Object.entries(texts[0]).map(([name, { dims }]) => [
    name,
    packed(texts, (text) => text[name].values, dims),
  ]);
  return Object.fromEntries(feeds) as Record<string, Tensor>;
}

const inType = (tensor: Tensor, type: string): Tensor =>
  type === 'bool' ? bool(Uint8Array.from(floatsOf(tensor)), tensor.dims) : tensor;

/** Of calls of equally many rows: the gradients of the mean over all rows. */
function joined(results: readonly StepResults[]): StepResults {
  const whole = (of: (result: StepResults) => Float32Array): Float32Array =>
    Float32Array.from(results.flatMap((result) => [...of(result)]));
  const [{ gradients: first }] = results;
  const gradients = first.map((values, i) =>
    values.map((_, at) => results.reduce((sum, { gradients }) => sum + gradients[i][at], 0) / results.length),
  );
  return { losses: whole(({ losses }) => losses), prediction: whole(({ prediction }) => prediction), gradients };
}
