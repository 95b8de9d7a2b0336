import type { Node, Value } from '../graph/graph';
import type { SizedGraph } from '../graph/sized-graph';

/** Means of a rule to write the gradients of a node. */
export interface RuleContext {
  graph: SizedGraph;
  node: Node;
  /** Gradients of the node's outputs; missing where nothing depends on one. */
  gradients: readonly (Value | undefined)[];
  /** A value of the forward pass, perhaps computed again. */
  read: (value: Value) => Value;
  /** Whether the gradient of an input is asked for. */
  wants: (input: number) => boolean;
}

/** Adds what the gradients of a node's inputs take from those of its outputs, as nodes. */
export type Rule = (context: RuleContext) => readonly (Value | undefined)[];
