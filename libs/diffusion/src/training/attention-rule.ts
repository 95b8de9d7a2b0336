import type { Value } from '../graph/graph';
import { intOf } from '../graph/shapes';
import type { RuleContext } from './rule-context';

/** Most numbers that the scores of a few heads may have at once: 64 MB. */
const mostScores = 2 ** 24;

/**
 * Gradients of softmax(q k^T / sqrt(width)) v for each head. The forward pass keeps no scores; here they are computed
 * again, for a few heads at a time, so that 512 x 512 pixels fit. The sum of a row of scores times their gradients is
 * that of the row's output times its gradient, which is far shorter.
 * Source: Dao et al., "FlashAttention" (2022), appendix B.2.
 */
export function attentionGradients({ graph, node, gradients, read, wants }: RuleContext): (Value | undefined)[] {
  const heads = intOf(node, 'num_heads');
  const isCausal = intOf(node, 'unidirectional') === 1;
  const [rows, queries, width] = graph.shape(node.inputs[0]);
  const keys = graph.shape(node.inputs[1])[1];
  const each = width / heads;
  const scale = each ** -0.5;
  const ofHeads = (x: Value): Value =>
    graph.transpose(graph.reshape(x, rows, graph.shape(x)[1], heads, each), 0, 2, 1, 3);
  const g = gradients[0]!;
  const products = graph.reshape(graph.mul(g, read(node.outputs[0])), rows, queries, heads, each);
  const sums = graph.transpose(graph.sum(products, [3]), 0, 2, 1, 3);
  const whole = [...node.inputs.slice(0, 3).map(read), g].map(ofHeads);
  const wanted = [0, 1, 2].filter(wants);
  const size = headsAtOnce(heads, rows * queries * keys);
  const parts = Array.from({ length: heads / size }, (_, part) => {
    const cut = (x: Value): Value => graph.slice(x, 1, part * size, (part + 1) * size);
    const [q, k, v, own] = whole.map(cut);
    const products = graph.product(q, k, { transB: true, scale });
    const scores = isCausal ? graph.add(products, laterTokens(graph, queries)) : products;
    const weights = graph.op('Softmax', [scores], { axis: 3 });
    const ofWeights = graph.product(own, v, { transB: true });
    const ofScores = graph.mul(weights, graph.sub(ofWeights, cut(sums)));
    const gradients: readonly (() => Value)[] = [
      () => graph.product(ofScores, k, { scale }),
      () => graph.product(ofScores, q, { transA: true, scale }),
      () => graph.product(weights, own, { transA: true }),
    ];
    // Side by side, so that these heads are done with before the scores of the next ones are made.
    return graph.concat(
      wanted.map((input) => gradients[input]()),
      2,
    );
  });
  const joined = graph.concat(parts, 1);
  const found: (Value | undefined)[] = [undefined, undefined, undefined];
  let end = 0;
  for (const input of wanted) {
    const begin = end;
    end += input === 0 ? queries : keys;
    const own = graph.slice(joined, 2, begin, end);
    found[input] = graph.reshape(graph.transpose(own, 0, 2, 1, 3), ...graph.shape(node.inputs[input]));
  }
  return found;
}

/** The most heads, of equal parts, whose scores are few enough; at least one. */
function headsAtOnce(heads: number, scoresOfHead: number): number {
  for (let parts = 1; parts < heads; parts++)
    if (heads % parts === 0 && (heads / parts) * scoresOfHead <= mostScores) return heads / parts;
  return 1;
}

/** [tokens, tokens]: a large negative number where the second is later than the first, else 0. */
function laterTokens(graph: RuleContext['graph'], tokens: number): Value {
  const values = Float32Array.from({ length: tokens * tokens }, (_, i) =>
    i % tokens > Math.floor(i / tokens) ? -1e9 : 0,
  );
  return graph.floats(`laterTokens(${tokens})`, values, [tokens, tokens]);
}
