import { WeightsFileError } from '../weights/named-tensor';
import type { Value } from './graph';
import { microsoft } from './graph-builder';
import type { Module } from './module';

/**
 * Attention of tokens [rows, tokens, width], without a matrix of all scores where the device can do that.
 * @param keyMask int32 [rows, tokens]: 0 for a token to which none attends
 */
export function attend(
  m: Module,
  [query, key, value]: readonly Value[],
  width: number,
  heads: number,
  isCausal = false,
  keyMask?: Value,
): Value {
  if (!Number.isInteger(heads) || width % heads !== 0)
    throw new WeightsFileError(`The attention of ${m.path} is ${width} wide, which is not for ${heads} heads.`);
  if (!m.isPlain) {
    const attributes = { num_heads: heads, ...(isCausal && { unidirectional: 1 }) };
    const inputs = [query, key, value, ...(keyMask ? ['', keyMask] : [])];
    return m.op('MultiHeadAttention', inputs, attributes, microsoft);
  }
  const ofHeads = (x: Value, ...perm: number[]): Value =>
    m.transpose(m.reshape(x, 0, 0, heads, width / heads), ...perm);
  const products = m.matmul(ofHeads(query, 0, 2, 1, 3), ofHeads(key, 0, 2, 3, 1));
  const scores = m.mul(products, m.number((width / heads) ** -0.5));
  const open = keyMask ? m.add(scores, maskedTokens(m, keyMask)) : scores;
  const weights = m.op('Softmax', [isCausal ? m.add(open, laterTokens(m, query)) : open], { axis: 3 });
  return m.reshape(m.transpose(m.matmul(weights, ofHeads(value, 0, 2, 1, 3)), 0, 2, 1, 3), 0, 0, width);
}

/** [tokens, tokens]: a large negative number where the second is later than the first, else 0. */
function laterTokens(m: Module, x: Value): Value {
  const tokens = m.op('Shape', [x], { start: 1, end: 2 });
  const all = m.op('Expand', [m.number(-1e4), m.concat([tokens, tokens], 0)]);
  return m.op('Trilu', [all, m.integers([1])], { upper: 1 });
}

/** [rows, 1, 1, tokens]: a large negative number where the mask is 0, else 0. */
function maskedTokens(m: Module, keyMask: Value): Value {
  const isMasked = m.cast(m.op('Equal', [m.cast(keyMask, 'int64'), m.integers([0])]));
  return m.mul(m.op('Unsqueeze', [isMasked, m.integers([1, 2])]), m.number(-1e4));
}
