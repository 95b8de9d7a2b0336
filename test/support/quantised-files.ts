import { decodeBlocks } from '../../libs/diffusion/src/gguf/blocks';
import { type NamedTensors, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { encodeGguf, type GgufTensor, quantised } from './gguf';
import type { StoredTensor, StoredTensors } from './part-files';

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
const float32 = (shape: readonly number[], values: ArrayLike<number>): StoredTensor => ({
  dtype: 'F32',
  shape,
  bytes: bytesOf(Float32Array.from(values)),
});

/** Weights of a part in blocks, and what these blocks are in float32. */
export async function inBlocks(tensors: NamedTensors, type: 'Q8_0' | 'Q4_0') {
  const blocks = new Map<string, GgufTensor>();
  const values: StoredTensors = new Map();
  for (const [name, tensor] of tensors) {
    const { shape } = tensor;
    const own = await readValues(tensor);
    const isMatrix = shape.length === 2 && shape[1] % 32 === 0;
    const bytes = isMatrix ? quantised(type, own) : bytesOf(own);
    blocks.set(name, { type: isMatrix ? type : 'F32', shape, bytes });
    values.set(name, float32(shape, isMatrix ? decodeBlocks(type, bytes) : own));
  }
  return { blocks, values };
}

/** Names of llama.cpp for the layers of Qwen3, as its converter writes them. */
const ofLlama: readonly [RegExp, string][] = [
  [/^model\.embed_tokens\./, 'token_embd.'],
  [/^model\.norm\./, 'output_norm.'],
  [/^lm_head\./, 'output.'],
  [/^model\.layers\./, 'blk.'],
  [/\.input_layernorm\./, '.attn_norm.'],
  [/\.post_attention_layernorm\./, '.ffn_norm.'],
  [/\.self_attn\.([qkv])_proj\./, '.attn_$1.'],
  [/\.self_attn\.o_proj\./, '.attn_output.'],
  [/\.self_attn\.([qk])_norm\./, '.attn_$1_norm.'],
  [/\.mlp\.(gate|up|down)_proj\./, '.ffn_$1.'],
];

/** The bytes of a GGUF file of Qwen3. @param changed what it says otherwise of its model */
export function ggufOfQwen3(
  blocks: ReadonlyMap<string, GgufTensor>,
  changed: Readonly<Record<string, string | number>> = {},
): Buffer {
  const named = [...blocks].map(
    ([name, tensor]) => [ofLlama.reduce((at, [from, to]) => at.replace(from, to), name), tensor] as const,
  );
  const metadata = { 'qwen3.rope.freq_base': 1e6, 'qwen3.attention.layer_norm_rms_epsilon': 1e-6 };
  return encodeGguf(new Map(named), { 'general.architecture': 'qwen3', ...metadata, ...changed });
}

/**
 * Matrices whose values have one magnitude each as numbers of 1 and -1 in float8, with their scales: one for a matrix,
 * or one for each row, or none where these have no name.
 */
export async function inFloat8(
  tensors: NamedTensors,
  scaleName: string | undefined,
  perRow: boolean,
): Promise<StoredTensors> {
  const found: StoredTensors = new Map();
  for (const [name, tensor] of tensors) {
    const { shape } = tensor;
    const values = await readValues(tensor);
    const isMatrix = shape.length === 2 && name.endsWith('.weight');
    if (!isMatrix) found.set(name, float32(shape, values));
    if (!isMatrix) continue;
    const [one, minusOne] = [0x38, 0xb8];
    found.set(name, { dtype: 'F8_E4M3', shape, bytes: Uint8Array.from(values, (x) => (x < 0 ? minusOne : one)) });
    if (scaleName === undefined) continue;
    const scales = Array.from({ length: perRow ? shape[0] : 1 }, () => Math.abs(values[0]));
    const layer = name.replace(/\.weight$/, '');
    found.set(`${layer}.${scaleName}`, float32(perRow ? [shape[0], 1] : [], scales));
    found.set(`${layer}.${scaleName === 'scale_weight' ? 'scale_input' : 'input_scale'}`, float32([], [7]));
  }
  return found;
}

/** What ComfyUI writes beside each layer in int8. */
export function withForms(tensors: StoredTensors, form: object): StoredTensors {
  const text = Buffer.from(JSON.stringify(form));
  const layers = [...tensors].filter(([, { dtype }]) => dtype === 'I8').map(([name]) => name.replace(/\.weight$/, ''));
  const beside = layers.map((layer): [string, StoredTensor] => [
    `${layer}.comfy_quant`,
    { dtype: 'U8', shape: [text.length], bytes: text },
  ]);
  return new Map([...tensors, ...beside]);
}
