import { unet2DConditionModel } from '../architectures/unet-2d-condition-model';
import type { ModelFolder } from '../families/model-folder';
import type { Graph, Node, Value, ValueInfo } from '../graph/graph';
import { countOf } from '../weights/named-tensor';
import { differentiate } from './differentiate';
import type { TrainingSettings } from './settings';
import { SizedGraph } from './sized-graph';

/** A layer that is trained: its weight gains B A. */
export interface TrainedLayer {
  path: string;
  /** [rank, ...in], as the layer's weight has its inputs. */
  a: readonly number[];
  /** [out, rank] */
  b: readonly number[];
}

/** Names of the graph's further inputs and outputs, beside those of the U-Net. */
export const names = {
  target: 'target',
  lossWeight: 'loss_weight',
  /** Mean squared error of each row, [batch]. */
  loss: 'loss',
  prediction: 'out_sample',
  a: (path: string): Value => `${path}.lora_A`,
  b: (path: string): Value => `${path}.lora_B`,
  gradientOf: (input: Value): Value => `gradient/${input}`,
};

export interface TrainingGraph {
  /** Settings that it was built for. */
  of: StepSizes & Pick<TrainingSettings, 'rank' | 'layers' | 'form'>;
  graph: Graph;
  layers: readonly TrainedLayer[];
  /** The sizes of a value of the graph. */
  shapeOf: (value: Value) => readonly number[];
}

/** Sizes of a step. */
export interface StepSizes {
  batch: number;
  /** Of latents. */
  height: number;
  width: number;
  /** Of a text. */
  tokens: number;
}

const trainedLayers: Readonly<Record<TrainingSettings['layers'], RegExp>> = {
  attention: /\.(?:to_[qkv]|to_out\.0)$/,
  all: /\.(?:to_[qkv]|to_out\.0|proj_in|proj_out|ff\.net\.0\.proj|ff\.net\.2|conv1|conv2)$/,
};

/**
 * The U-Net, its loss, and the gradients of its adapters, as one graph: mean over rows of `loss_weight` times the mean
 * squared difference to `target`. All rows share an adapter, whose factors have a leading axis of 1.
 */
export function trainingGraph(
  folder: Pick<ModelFolder, 'tensors' | 'unet'>,
  { rank, layers, form }: Pick<TrainingSettings, 'rank' | 'layers' | 'form'>,
  { batch, height, width, tokens }: StepSizes,
): TrainingGraph {
  const of = { rank, layers, form, batch, height, width, tokens };
  const { graph, predicted, trained } = sizedUnet(folder, of, of);
  const { loss, seed } = withLoss(graph, predicted);
  const leaves = trained.flatMap(({ path }) => [names.a(path), names.b(path)]);
  const partOf = form === 'recomputed' ? partsOf(graph.graph.nodes) : undefined;
  const gradients = differentiate(graph, new Map([[names.prediction, seed]]), leaves, partOf);
  graph.graph.outputs.push({ name: names.prediction, type: 'float32', shape: graph.shape(names.prediction) });
  // With those of the last layers at the end, each gradient is computed as soon as it can be, and what it needs is freed.
  for (const leaf of leaves) graph.output(names.gradientOf(leaf), gradients.get(leaf)!);
  graph.output(names.loss, loss);
  return { of, graph: graph.finish(), layers: trained, shapeOf: (value) => graph.shape(value) };
}

/** The layers that are trained, which do not depend on the size of a step. */
export function trainedLayersOf(
  folder: Pick<ModelFolder, 'tensors' | 'unet'>,
  settings: Pick<TrainingSettings, 'rank' | 'layers'>,
): readonly TrainedLayer[] {
  return sizedUnet(folder, settings, { batch: 1, height: 64, width: 64, tokens: 77 }).trained;
}

/** Weights above this stay in their mapped file: copies in another order would double them. */
const mostCopiedBytes = 2 ** 29;

/** Bytes of a graph's weights as they are held: those in half precision are widened. */
export function heldWeightBytes({ initializers }: Pick<Graph, 'initializers'>): number {
  const weights = [...initializers.values()].filter((one) => 'file' in one);
  return weights.reduce((sum, { shape }) => sum + 4 * countOf(shape), 0);
}

/** Whether a graph's weights may be held once more, in an order in which they are read faster. */
export const mayCopyWeights = (graph: Pick<Graph, 'initializers'>): boolean =>
  heldWeightBytes(graph) <= mostCopiedBytes;

/** The U-Net with its adapters for steps of these sizes, and the layers that have one. */
function sizedUnet(
  folder: Pick<ModelFolder, 'tensors' | 'unet'>,
  { rank, layers }: Pick<TrainingSettings, 'rank' | 'layers'>,
  { batch, height, width, tokens }: StepSizes,
): { graph: SizedGraph; predicted: Value; trained: TrainedLayer[] } {
  const isAdapted = (path: string): boolean => trainedLayers[layers].test(path);
  const { graph: source } = unet2DConditionModel({ tensors: folder.tensors.get('unet')!, isAdapted }, folder.unet);
  const sizes: Readonly<Record<string, number>> = { batch, height, width, tokens, adapters: 1 };
  const shapeOf = ({ shape }: ValueInfo): number[] =>
    shape!.map((length) => (typeof length === 'number' ? length : (sizes[length] ?? rank)));
  const graph = SizedGraph.of(source, shapeOf, mayCopyWeights(source));
  const trained = source.inputs.flatMap(({ name }) => {
    if (!name.endsWith('.lora_A')) return [];
    const path = name.slice(0, -'.lora_A'.length);
    const [a, b] = [name, names.b(path)].map((input) => graph.shape(input).slice(1));
    return [{ path, a, b }];
  });
  return { graph, predicted: source.outputs[0].name, trained };
}

/** The loss of each row, and the gradient of their weighted mean with respect to the prediction. */
function withLoss(graph: SizedGraph, prediction: Value): { loss: Value; seed: Value } {
  const shape = graph.shape(prediction);
  const [batch] = shape;
  const [target, weight] = [graph.input(names.target, shape), graph.input(names.lossWeight, [batch])];
  const difference = graph.sub(prediction, target);
  const loss = graph.mean(graph.mul(difference, difference), [1, 2, 3]);
  const factors = graph.scale(graph.reshape(weight, [batch, 1, 1, 1]), 2 / countOf(shape));
  return { loss, seed: graph.mul(difference, factors) };
}

/** A residual block, an attention without its transformer blocks, each of these, or what changes the size. */
const ownPart = /^(?:(?:down|up)_blocks\.\d+|mid_block)\.\w+\.\d+(?:\.transformer_blocks\.\d+)?/;

/** The part of each node of a U-Net. What joins a skip connection is in the part that it goes into. */
function partsOf(nodes: readonly Node[]): (node: Node) => string | undefined {
  const parts = new Map<Value, string>();
  let next: string | undefined;
  for (const { name, opType } of nodes.toReversed()) {
    const own = ownPart.exec(name)?.[0];
    if (own !== undefined) next = own;
    const part = own ?? (opType === 'Concat' && name.startsWith('up_blocks.') ? next : undefined);
    if (part !== undefined) parts.set(name, part);
  }
  return ({ name }) => parts.get(name);
}
