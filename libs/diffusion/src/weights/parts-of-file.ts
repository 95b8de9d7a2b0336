/** What a file of one part of a transformer's model has, or of all its parts, with the names of diffusers. */
import { type NamedTensor, type NamedTensors, rowsOf, WeightsFileError } from './named-tensor';
import { type PartName, withDiffusersNames } from './original-names';
import { diffusersLayer, type NamedFamily } from './original-transformer-names';

/** What programs write before the names of a part. */
const prefixes: readonly [prefix: RegExp, part: PartName][] = [
  [/^(?:model\.)?diffusion_model\./, 'transformer'],
  [/^text_encoders\.[^.]+\.(?:transformer\.)?/, 'text_encoder'],
  [/^(?:vae|first_stage_model)\./, 'vae'],
];

/** A tensor that a part has, by which a file of it alone is known. */
const marks: readonly [name: RegExp, part: PartName][] = [
  [/^double_stream_modulation_img\.lin(?:ear)?\.weight$/, 'transformer'],
  [/^cap_pad_token$/, 'transformer'],
  [/^(?:blk\.0\.attn_q_norm|(?:model\.)?layers\.0\.self_attn\.q_norm)\.weight$/, 'text_encoder'],
  [/^decoder\.conv_in\.weight$/, 'vae'],
];

/** Whether a file has a transformer of a kind whose parts are known here. */
export const hasTransformer = (tensors: NamedTensors): boolean =>
  [...tensors.keys()].some((name) =>
    marks.some(([mark, part]) => part === 'transformer' && mark.test(unprefixed(name))),
  );

const unprefixed = (name: string): string => name.replace(prefixes[0][0], '');

/**
 * The parts that a file has, or none if it is of another kind of model. Only parts of models with a transformer are
 * known here, and what is fused in the file is rows of it.
 * @throws WeightsFileError if a tensor is of no known layer
 */
export function partsOfFile(tensors: NamedTensors): Map<PartName, NamedTensors> {
  const grouped = new Map<PartName, Map<string, NamedTensor>>();
  const alone = marks.find(([mark]) => [...tensors.keys()].some((name) => mark.test(name)))?.[1];
  for (const [name, tensor] of tensors) {
    const [prefix, part] = prefixes.find(([each]) => each.test(name)) ?? ['', alone];
    if (part === undefined) continue;
    grouped.set(part, (grouped.get(part) ?? new Map<string, NamedTensor>()).set(name.replace(prefix, ''), tensor));
  }
  const known = [...grouped].filter(([, own]) =>
    marks.some(([mark]) => [...own.keys()].some((name) => mark.test(name))),
  );
  return new Map(known.map(([part, own]) => [part, withOwnNames(partTensors(part, own))]));
}

function partTensors(part: PartName, tensors: NamedTensors): NamedTensors {
  if (part === 'transformer') return transformerTensors(tensors.has('cap_pad_token') ? 'z-image' : 'flux2', tensors);
  return part === 'text_encoder' ? qwen3Tensors(tensors) : withDiffusersNames(part, tensors);
}

/** What no graph reads is told by the name that it would have. */
const withOwnNames = (tensors: NamedTensors): NamedTensors =>
  new Map([...tensors].map(([name, tensor]) => [name, { ...tensor, name }]));

/** Tensors of Z-Image that no program uses. */
const ofNoUse = ['norm_final.weight'];

function transformerTensors(family: NamedFamily, tensors: NamedTensors): NamedTensors {
  const found = new Map<string, NamedTensor>();
  for (const [name, tensor] of tensors) {
    const dot = name.lastIndexOf('.');
    // Programs of GGUF leave axes of length 1 out.
    if (dot < 0) found.set(name, { ...tensor, shape: [1, ...tensor.shape].slice(-2) });
    if (dot < 0 || ofNoUse.includes(name)) continue;
    const { paths, isSwapped } = diffusersLayer(family, name.slice(0, dot));
    const parameter = name.slice(dot).replace(/^\.scale$/, '.weight');
    const rows = tensor.shape[0] / paths.length;
    if (!Number.isInteger(isSwapped ? rows / 2 : rows))
      throw new WeightsFileError(`The tensor ${name} of ${tensor.shape[0]} rows cannot be parted.`);
    const twice = paths.find((path) => found.has(path + parameter));
    if (twice !== undefined) throw new WeightsFileError(`Two tensors are ${twice}${parameter}; one is ${name}.`);
    for (const [i, path] of paths.entries())
      found.set(path + parameter, {
        ...(paths.length > 1 ? rowsOf(tensor, i * rows, (i + 1) * rows) : tensor),
        ...(isSwapped && { isSwapped }),
      });
  }
  return found;
}

/** Names of llama.cpp for the layers of a block of Qwen3. */
const llamaNames: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  ffn_norm: 'post_attention_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
const llamaOuter: Readonly<Record<string, string>> = {
  'token_embd.weight': 'model.embed_tokens.weight',
  'output_norm.weight': 'model.norm.weight',
  'output.weight': 'lm_head.weight',
};

const inBlock = new RegExp(`^model\\.layers\\.\\d+\\.(?:${Object.values(llamaNames).join('|')})\\.weight$`);

/** @throws WeightsFileError for a tensor that Qwen3 has not: it is of another language model */
function qwen3Tensors(tensors: NamedTensors): NamedTensors {
  const found = new Map<string, NamedTensor>();
  for (const [name, tensor] of tensors) {
    // ComfyUI writes it beside text encoders of any kind.
    if (name === 'logit_scale') continue;
    const [, block, layer = ''] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
    const plain = name.replace(/^(?=(?:embed_tokens|layers|norm)\.)/, 'model.');
    const path = llamaOuter[name] ?? (block ? `model.layers.${block}.${llamaNames[layer] ?? layer}.weight` : plain);
    if (!inBlock.test(path) && !Object.values(llamaOuter).includes(path))
      throw new WeightsFileError(`The tensor ${name} is of another language model than Qwen3.`);
    found.set(path, tensor);
  }
  return found;
}
