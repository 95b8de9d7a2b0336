import { type Node, type Value, widensWeight } from '../graph/graph';
import { rules } from './rules';
import { UnknownOperatorError } from '../graph/shapes';
import type { SizedGraph } from '../graph/sized-graph';

/** The part of a model that a node belongs to; undefined where its values are kept until their gradients are there. */
export type PartOf = (node: Node) => string | undefined;

/**
 * Adds the gradients of some values to a graph.
 * @param seeds gradients that are known, by value: of the loss with respect to what the model gives
 * @param leaves values whose gradients are asked for
 * @param partOf which values are computed again, part by part, in place of being kept
 * @returns the gradients of those leaves that the seeds depend on
 * @throws UnknownOperatorError for an operator without a rule
 */
export function differentiate(
  graph: SizedGraph,
  seeds: ReadonlyMap<Value, Value>,
  leaves: readonly Value[],
  partOf: PartOf = () => undefined,
): ReadonlyMap<Value, Value> {
  const forward = [...graph.graph.nodes];
  // Values on a path from a leaf; others have no gradients.
  const active = new Set(leaves);
  for (const { inputs, outputs } of forward)
    if (inputs.some((name) => active.has(name))) for (const name of outputs) active.add(name);
  const found = new Map(seeds);
  const readFor = recomputing(graph, forward, active, partOf);
  for (const node of forward.toReversed()) {
    const gradients = node.outputs.map((name) => found.get(name));
    const arriving = gradients.find((each) => each !== undefined);
    if (arriving === undefined || !node.inputs.some((name) => active.has(name))) continue;
    const rule = rules[node.opType];
    if (!rule) throw new UnknownOperatorError(node, 'gradient');
    const wants = (input: number): boolean => active.has(node.inputs[input]);
    const results = rule({ graph, node, gradients, read: readFor(node, arriving), wants });
    for (const [i, gradient] of results.entries()) {
      if (gradient === undefined || !wants(i)) continue;
      const before = found.get(node.inputs[i]);
      // Added up as they come, so that no more than two are held.
      found.set(node.inputs[i], before === undefined ? gradient : graph.add(before, gradient));
    }
  }
  return new Map(leaves.flatMap((leaf) => (found.has(leaf) ? [[leaf, found.get(leaf)!] as const] : [])));
}

/**
 * Where rules read values that are not kept. What goes into a part is kept. Its other values come from copies of its
 * nodes, which wait for the gradient that arrives at the part: their inputs go through a `Where` on a condition that is
 * made of this gradient, and is always false. Without it ONNX Runtime would merge the copies with their originals.
 */
function recomputing(graph: SizedGraph, forward: readonly Node[], active: ReadonlySet<Value>, partOf: PartOf) {
  const makers = new Map(forward.flatMap((node) => node.outputs.map((name) => [name, node] as const)));
  const copies = new Map<string, { again: Map<Value, Value>; gate: Value }>();
  const kept = (value: Value): Value => {
    const maker = makers.get(value);
    return maker && widensWeight(maker, graph.graph) ? widenedAgain(graph, maker) : value;
  };
  return (user: Node, arriving: Value) => {
    const part = partOf(user);
    if (part === undefined) return kept;
    if (!copies.has(part)) copies.set(part, { again: new Map(), gate: gateOf(graph, arriving) });
    const { again, gate } = copies.get(part)!;
    const read = (value: Value): Value => {
      const done = again.get(value);
      if (done !== undefined) return done;
      const maker = makers.get(value);
      // Values that depend on no leaf are kept: weights, and the few values before the first adapter.
      if (!maker || !active.has(value)) return kept(value);
      if (partOf(maker) !== part) {
        again.set(value, graph.op('Where', [gate, value, value]));
        return again.get(value)!;
      }
      const outputs = maker.outputs.map((name) => `${name}/again`);
      graph.push({ ...maker, name: `${maker.name}/again`, inputs: maker.inputs.map(read), outputs });
      for (const [i, name] of maker.outputs.entries()) again.set(name, outputs[i]);
      return again.get(value)!;
    };
    return read;
  };
}

/**
 * A weight once more in float32. Where the whole model is too large for that, each weight is widened when it is used,
 * and the one of the forward pass would be held until its gradients are there.
 */
function widenedAgain(graph: SizedGraph, maker: Node): Value {
  const name = `${maker.outputs[0]}/again`;
  if (!graph.has(name)) graph.push({ ...maker, name, outputs: [name] });
  return name;
}

function gateOf(graph: SizedGraph, gradient: Value): Value {
  const first = graph.slice(
    graph.reshape(
      gradient,
      graph.shape(gradient).reduce((x, y) => x * y, 1),
    ),
    0,
    0,
    1,
  );
  return graph.op('Greater', [first, graph.number(Infinity)]);
}
