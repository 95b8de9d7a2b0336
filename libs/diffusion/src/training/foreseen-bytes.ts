import type { ModelFolder } from '../families/model-folder';
import { type Graph, type Node, type Value, widensWeight } from '../graph/graph';
import { countOf } from '../weights/named-tensor';
import { type TrainingSettings, trainingSettings } from './settings';
import { readTrainable } from './trainable';
import { heldWeightBytes, holdsHalf, rowsOfCall, type TrainingGraph, trainingGraph } from './training-graph';

/** Memory that a training takes, before it is opened. */
export interface ForeseenBytes {
  /** The weights of the parts in the graph, in float32 or, where `holdsHalf`, as they are stored. */
  weights: number;
  /** Bytes that a step holds beside them. */
  step: number;
  /** The graph that tells it: a trainer that is given it need not build it again. */
  planned: TrainingGraph;
}

/**
 * Foresees the memory of a training's steps from its graph, of which nothing is loaded. To open it takes what drawing a
 * picture does: that is for prior pictures.
 * @param folder the model's, or what was read of it
 * @param pictures each with a text of its own, whose states are held
 * @throws ModelFolderError
 */
export async function foreseenBytes(
  folder: string | ModelFolder,
  settings: Partial<TrainingSettings> = {},
  pictures = 1,
): Promise<ForeseenBytes> {
  const model = await readTrainable(folder);
  const { size, ...others } = trainingSettings(model, pictures, settings);
  const edge = size / model.autoencoder.scaleFactor;
  const sizes = { batch: rowsOfCall(model, others), height: edge, width: edge, tokens: model.conditioner.rowTokens };
  const planned = trainingGraph(model, others, sizes);
  const { graph, shapeOf } = planned;
  const states = graph.inputs.find(({ name }) => name === 'encoder_hidden_states');
  const ofText = states ? (4 * countOf(states.shape as number[])) / sizes.batch : 0;
  const texts = (pictures + others.priorPrompts.length + 1) * ofText;
  return { weights: heldWeightBytes(graph), step: bytesOfStep(graph, shapeOf) + texts, planned };
}

/** Operators whose output takes the place of an input that nothing else needs. */
const inPlace = new Set(['Add', 'Sub', 'Mul', 'Sigmoid', 'Exp', 'Erf', 'Softmax']);
/** Operators whose output is their input in another shape. */
const views = new Set(['Reshape', 'Squeeze', 'Unsqueeze', 'Identity']);

/** Bytes that a process takes with a graph and no step. */
const processBytes = 2 ** 27;
/**
 * Of what is needed at one time, and of the columns that the largest convolution is laid out in: memory is asked for in
 * powers of two, and has gaps. Chosen to be above what Stable Diffusion 1.5 was measured to take at 512 x 512: 2.7 GB,
 * and 1.9 recomputed.
 */
const [shareOfPeak, shareOfColumns] = [1.25, 10];
/**
 * Of what is needed at one time where weights are widened when they are used: gaps are as large as they are. A third of
 * FLUX.2 [klein] 4B, recomputed, took 2.1 GiB beside its mapped weights at 256 x 256, and 3.3 at 512 x 512; 2.4 and 3.4
 * are foreseen.
 */
const shareOfWidened = 3;

function bytesOfStep(graph: Graph, shapeOf: (value: Value) => readonly number[]): number {
  const columns = graph.nodes.map(({ opType, inputs: [x, kernel] }) =>
    opType === 'ConvTranspose' ? columnBytes(shapeOf(x), shapeOf(kernel)) : 0,
  );
  const share = holdsHalf(graph) ? shareOfWidened : shareOfPeak;
  return processBytes + share * peakBytes(graph, shapeOf) + shareOfColumns * Math.max(...columns);
}

/** Most bytes of values that are needed at one time. */
function peakBytes(graph: Graph, shapeOf: (value: Value) => readonly number[]): number {
  const { outputs } = graph;
  const { nodes, held } = inOrder(graph);
  const owners = new Map<Value, Value>();
  const owner = (value: Value): Value => owners.get(value) ?? value;
  const lastUses = new Map<Value, number>();
  for (const [i, { opType, inputs, outputs: made }] of nodes.entries()) {
    if (views.has(opType)) owners.set(made[0], owner(inputs[0]));
    for (const input of inputs) lastUses.set(owner(input), i);
  }
  for (const { name } of outputs) lastUses.set(owner(name), nodes.length);
  const bytesOf = (value: Value): number => 4 * countOf(shapeOf(value));
  let [live, peak] = [0, 0];
  for (const [i, { opType, inputs, outputs: made }] of nodes.entries()) {
    if (views.has(opType)) continue;
    const gone = [...new Set(inputs.map(owner))].filter(
      (input) => input !== '' && lastUses.get(input) === i && !held.has(input),
    );
    const given = made.reduce((sum, name) => sum + (lastUses.has(name) ? bytesOf(name) : 0), 0);
    const freed = gone.reduce((sum, name) => sum + bytesOf(name), 0);
    peak = Math.max(peak, live + given - (inPlace.has(opType) ? Math.min(given, freed) : 0));
    live += given - freed;
  }
  return peak;
}

/**
 * Nodes in the order in which they are computed, and values that are held all the time: a weight in half precision is
 * widened as the graph is loaded, or else just before it is used.
 */
function inOrder(graph: Graph): { nodes: Node[]; held: ReadonlySet<Value> } {
  const widening = new Map(
    graph.nodes.filter((node) => widensWeight(node, graph)).map((node) => [node.outputs[0], node]),
  );
  const others = graph.nodes.filter(({ outputs }) => !widening.has(outputs[0]));
  if (!holdsHalf(graph)) return { nodes: others, held: new Set([...graph.initializers.keys(), ...widening.keys()]) };
  const nodes = others.flatMap((node) => {
    const first = node.inputs.flatMap((input) => widening.get(input) ?? []);
    for (const { outputs } of first) widening.delete(outputs[0]);
    return [...first, node];
  });
  return { nodes, held: new Set(graph.initializers.keys()) };
}

/** Of one row: each kernel's place of each pixel. */
const columnBytes = ([, , height, width]: readonly number[], [, channels, rows, columns]: readonly number[]): number =>
  4 * channels * rows * columns * height * width;
