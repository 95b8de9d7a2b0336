import type { StepSizes } from '../denoisers/denoiser';
import type { Graph, Node, Value, ValueInfo } from '../graph/graph';
import { mostWidenedBytes } from '../sessions/model-session';
import { widenedBytesOf } from '../sessions/placed-graph';
import { byteLength, countOf } from '../weights/named-tensor';
import { differentiate } from './differentiate';
import { takesTokens, type TrainingSettings } from './settings';
import { type TrainableModel, trainedEncodersOf } from './trainable';
import { SizedGraph } from '../graph/sized-graph';

/** An input that is trained: a factor of a layer, or the embeddings of a word. */
export interface TrainedInput {
  name: Value;
  /** With the leading 1 of a factor, which all rows share. */
  shape: readonly number[];
}

/** Names of the graph's further inputs and outputs, beside those of the denoiser. */
export const names = {
  target: 'target',
  lossWeight: 'loss_weight',
  /** Token ids of each text encoder, if they are in the graph. */
  tokensOf: (part: string): Value => `${part}.input_ids`,
  /** 0 for each row whose text is zeros, else 1: [batch]. */
  textScale: 'text_scale',
  /** Mean squared error of each row, [batch]. */
  loss: 'loss',
  prediction: 'out_sample',
  gradientOf: (input: Value): Value => `gradient/${input}`,
};

const graphSettings = ['rank', 'layers', 'form', 'textEncoders', 'kind', 'vectors'] as const;
type GraphSettings = Pick<TrainingSettings, (typeof graphSettings)[number]>;

type TrainedModel = Pick<TrainableModel, 'denoiser' | 'conditioner'>;

export interface TrainingGraph {
  of: StepSizes & GraphSettings;
  graph: Graph;
  trained: readonly TrainedInput[];
  shapeOf: (value: Value) => readonly number[];
}

/** Whether a graph was built for these settings and sizes. */
export const isFor = ({ of }: TrainingGraph, wanted: GraphSettings & StepSizes): boolean =>
  ([...graphSettings, 'batch', 'height', 'width', 'tokens'] as const).every((name) => of[name] === wanted[name]);

/** Layers of text encoders, as diffusers' scripts train them. */
const trainedTextLayers = /\.self_attn\.(?:[qkv]_proj|out_proj)$/;

/**
 * The denoiser, the text encoders before it where they are trained too, the loss, and the gradients of what is trained,
 * as one graph: mean over rows of `loss_weight` times the mean squared difference to `target`.
 */
export function trainingGraph(folder: TrainedModel, settings: GraphSettings, sizes: StepSizes): TrainingGraph {
  const { graph, predicted, trained } = sizedModel(folder, settings, sizes);
  const { loss, seed } = withLoss(graph, predicted);
  const leaves = trained.map(({ name }) => name);
  const { blocks } = folder.denoiser.training;
  const partOf = settings.form === 'recomputed' ? partsOf(graph.graph.nodes, blocks) : undefined;
  const gradients = differentiate(graph, new Map([[names.prediction, seed]]), leaves, partOf);
  graph.graph.outputs.push({ name: names.prediction, type: 'float32', shape: graph.shape(names.prediction) });
  // With those of the last layers at the end, each is computed as soon as it can be, and what it needs is freed.
  for (const leaf of leaves) graph.output(names.gradientOf(leaf), gradients.get(leaf)!);
  graph.output(names.loss, loss);
  const of = { ...settings, ...sizes };
  return { of, graph: graph.finish(), trained, shapeOf: (value) => graph.shape(value) };
}

/** Rows of a step that share a call. */
export const rowsOfCall = ({ denoiser }: Pick<TrainedModel, 'denoiser'>, { batch }: Pick<TrainingSettings, 'batch'>) =>
  denoiser.training.hasOwnCalls ? 1 : batch;

/** The inputs that are trained, which do not depend on the size of a step. */
export function trainedInputsOf(folder: TrainedModel, settings: GraphSettings): readonly TrainedInput[] {
  const tokens = folder.conditioner.rowTokens;
  return sizedModel(folder, settings, { batch: 1, height: 64, width: 64, tokens }).trained;
}

/** Weights above this stay in their mapped file: copies in another order would double them. */
const mostCopiedBytes = 2 ** 29;

/** Whether weights in half precision are held as they are, and each is widened when it is used. */
export const holdsHalf = (graph: Pick<Graph, 'initializers'>): boolean => widenedBytesOf(graph) > mostWidenedBytes;

/** Bytes of a graph's weights as they are held. */
export function heldWeightBytes(graph: Pick<Graph, 'initializers'>): number {
  const weights = [...graph.initializers.values()].filter((one) => 'file' in one);
  const bytesOf = holdsHalf(graph) ? byteLength : ({ shape }: (typeof weights)[number]) => 4 * countOf(shape);
  return weights.reduce((sum, weight) => sum + bytesOf(weight), 0);
}

/** Whether the weights of graphs may be held once more, in an order in which they are read faster. */
export const mayCopyWeights = (...graphs: Pick<Graph, 'initializers'>[]): boolean =>
  graphs.reduce((sum, graph) => sum + heldWeightBytes(graph), 0) <= mostCopiedBytes;

/** The model for steps of these sizes, and those of its inputs that are trained. */
function sizedModel(
  { denoiser, conditioner }: TrainedModel,
  { rank, layers, textEncoders, kind, vectors = 0 }: Omit<GraphSettings, 'form'>,
  steps: StepSizes,
): { graph: SizedGraph; predicted: Value; trained: TrainedInput[] } {
  const adapts = (pattern: RegExp) => (path: string) => kind !== 'textual_inversion' && pattern.test(path);
  const { training } = denoiser;
  const sizes: Readonly<Record<string, number>> = { ...steps, ...training.axesOf(steps), adapters: 1, vectors };
  const shapeOf = ({ shape }: ValueInfo): number[] =>
    shape!.map((length) => (typeof length === 'number' ? length : (sizes[length] ?? rank)));
  const options = { tensors: denoiser.tensors, isAdapted: adapts(training.layers[layers]) };
  const { graph: predicting } = training.build(options);
  const clip = takesTokens({ textEncoders, kind }) ? trainedEncodersOf(conditioner) : undefined;
  const encoders = clip?.encoders ?? [];
  const texts = encoders.map(({ part, tensors, build }) => ({
    part,
    graph: build({ tensors, isAdapted: adapts(trainedTextLayers) }).graph,
  }));
  const graph = new SizedGraph(mayCopyWeights(predicting, ...texts.map((text) => text.graph)));
  for (const text of texts) graph.include(text.graph, shapeOf, `${text.part}.`);
  if (clip) withTexts(graph, texts, steps, clip.hasZerosForNoText);
  graph.include(predicting, shapeOf);
  const trained = graph.graph.inputs.flatMap(({ name }) => {
    const shape = graph.shape(name);
    return /\.(?:lora_[AB]|token_vectors)$/.test(name) && countOf(shape) > 0 ? [{ name, shape }] : [];
  });
  return { graph, predicted: predicting.outputs[0].name, trained };
}

/** Adds the denoiser's inputs that come of texts: the states of all encoders side by side, and the pooled text. */
function withTexts(
  graph: SizedGraph,
  texts: readonly { part: string; graph: Graph }[],
  { batch }: StepSizes,
  hasZeros: boolean,
): void {
  const outputs = texts.flatMap(({ part, graph }) => graph.outputs.map(({ name }) => `${part}.${name}`));
  const pooled = outputs.find((name) => name.endsWith('.text_embeds'));
  const scale = hasZeros && graph.input(names.textScale, [batch]);
  const give = (name: Value, value: Value, axes: readonly number[]): Value =>
    graph.op('Identity', [scale ? graph.mul(value, graph.reshape(scale, ...axes)) : value], {}, '', name);
  const states = outputs.filter((name) => name !== pooled);
  give('encoder_hidden_states', graph.concat(states, 2), [batch, 1, 1]);
  if (pooled !== undefined) give('text_embeds', pooled, [batch, 1]);
}

/** The loss of each row, and the gradient of their weighted mean with respect to the prediction. */
function withLoss(graph: SizedGraph, prediction: Value): { loss: Value; seed: Value } {
  const shape = graph.shape(prediction);
  const [batch] = shape;
  const [target, weight] = [graph.input(names.target, shape), graph.input(names.lossWeight, [batch])];
  const difference = graph.sub(prediction, target);
  const loss = graph.mean(graph.mul(difference, difference), [1, 2, 3]);
  const factors = graph.scale(graph.reshape(weight, batch, 1, 1, 1), 2 / countOf(shape));
  return { loss, seed: graph.mul(difference, factors) };
}

/** Layers of text encoders, which are computed again each by itself. */
const textLayers = /^text_encoder(?:_2)?\.text_model\.encoder\.layers\.\d+/;

/**
 * The part of each node of a model: a block of the denoiser, or a layer of a text encoder. What joins a skip connection
 * is in the part that it goes into.
 */
function partsOf(nodes: readonly Node[], blocks: RegExp): (node: Node) => string | undefined {
  const parts = new Map<Value, string>();
  let next: string | undefined;
  for (const { name, opType } of nodes.toReversed()) {
    const own = (blocks.exec(name) ?? textLayers.exec(name))?.[0];
    if (own !== undefined) next = own;
    const part = own ?? (opType === 'Concat' && name.startsWith('up_blocks.') ? next : undefined);
    if (part !== undefined) parts.set(name, part);
  }
  return ({ name }) => parts.get(name);
}
