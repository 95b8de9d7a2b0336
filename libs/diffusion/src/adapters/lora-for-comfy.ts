import { Readable } from 'node:stream';
import { safetensorsHeader } from '../safetensors/write-safetensors';
import { countOf, type NamedTensor, type NamedTensors, readValues } from '../weights/named-tensor';
import { readSafetensors } from '../weights/safetensors-file';

/** A tensor of a file that is written, whose values are read when their turn comes. */
interface WrittenTensor {
  shape: readonly number[];
  values: () => Promise<Float32Array>;
}

/** The two factors of a layer, and which of the three parts of an original layer it is, if that is one of three. */
interface Layer {
  a: NamedTensor;
  b: NamedTensor;
  part: number;
}

/**
 * A LoRA that was trained here as ComfyUI reads it: of a U-Net in the names of kohya's scripts, of a transformer in those
 * of its original program and with peft's names of factors, which diffusers and other trainers read too. Embeddings of a word have no other names.
 */
export async function loraForComfy(file: string): Promise<{ stream: Readable; bytes: number }> {
  const written = tensorsForComfy(await readSafetensors(file));
  const header = safetensorsHeader(written, { format: 'pt' });
  const bytes = [...written.values()].reduce((sum, { shape }) => sum + 4 * countOf(shape), header.length);
  async function* parts(): AsyncGenerator<Uint8Array> {
    yield header;
    for (const { values } of written.values()) {
      const { buffer, byteOffset, byteLength } = await values();
      yield new Uint8Array(buffer, byteOffset, byteLength);
    }
  }
  return { stream: Readable.from(parts(), { objectMode: false }), bytes };
}

/** Exported for tests. */
export function tensorsForComfy(tensors: NamedTensors): ReadonlyMap<string, WrittenTensor> {
  const layers = new Map<string, Layer[]>();
  const written = new Map<string, WrittenTensor>();
  const isXl = [...tensors.keys()].some((name) => name.startsWith('text_encoder_2.'));
  for (const [name, a] of tensors) {
    const [, model, path] = /^(\w+)\.(.+)\.lora_A\.weight$/.exec(name) ?? [];
    if (path !== undefined) {
      const { original, part } =
        model === 'transformer' ? originalOf(path) : { original: kohyaOf(model, path, isXl), part: 0 };
      const b = tensors.get(`${model}.${path}.lora_B.weight`)!;
      layers.set(original, [...(layers.get(original) ?? []), { a, b, part }]);
    } else if (!name.endsWith('.lora_B.weight')) written.set(name, { shape: a.shape, values: () => readValues(a) });
  }
  for (const [name, own] of layers) {
    const [down, up] = factorsOf(own);
    const isKohya = name.startsWith('lora_');
    written.set(`${name}.${isKohya ? 'lora_down' : 'lora_A'}.weight`, down);
    written.set(`${name}.${isKohya ? 'lora_up' : 'lora_B'}.weight`, up);
    // As large as the rank, so that the product is added as it is; without one it is, but kohya's scripts want one.
    if (isKohya) written.set(`${name}.alpha`, { shape: [], values: async () => Float32Array.of(down.shape[0]) });
  }
  return written;
}

/** The factors of a layer, which may be three of the model's, stacked: their ranks are added up. */
function factorsOf(layers: readonly Layer[]): [WrittenTensor, WrittenTensor] {
  const [{ a, b }] = layers;
  const [rank, ...into] = a.shape;
  const [out] = b.shape;
  const all = rank * layers.length;
  const stacked = async (): Promise<Float32Array> => {
    const values = await Promise.all(layers.map((layer) => readValues(layer.a)));
    return Float32Array.from(values.flatMap((own) => [...own]));
  };
  // Each part of the outputs has factors of its own, and zeros beside them.
  const spread = async (): Promise<Float32Array> => {
    const values = new Float32Array(partsOfQkv * out * all);
    for (const [i, layer] of layers.entries())
      for (const [at, value] of (await readValues(layer.b)).entries()) {
        const row = layer.part * out + Math.floor(at / rank);
        values[row * all + i * rank + (at % rank)] = value;
      }
    return values;
  };
  if (layers.length === 1)
    return [
      { shape: a.shape, values: () => readValues(a) },
      { shape: b.shape, values: () => readValues(b) },
    ];
  return [
    { shape: [all, ...into], values: stacked },
    { shape: [partsOfQkv * out, all], values: spread },
  ];
}

const partsOfQkv = 3;

/** `lora_unet_down_blocks_0_attentions_0_proj_in`; XL's text encoders are numbered. */
function kohyaOf(model: string, path: string, isXl: boolean): string {
  const names: Readonly<Record<string, string>> = {
    unet: 'unet',
    text_encoder: isXl ? 'te1' : 'te',
    text_encoder_2: 'te2',
  };
  return `lora_${names[model]}_${path.replaceAll('.', '_')}`;
}

/** Layers of FLUX.2's blocks that have one side for the picture and one for the text. */
const ofSides: Readonly<Record<string, string>> = {
  'attn.to_out.0': 'img_attn.proj',
  'attn.to_add_out': 'txt_attn.proj',
  'ff.linear_in': 'img_mlp.0',
  'ff.linear_out': 'img_mlp.2',
  'ff_context.linear_in': 'txt_mlp.0',
  'ff_context.linear_out': 'txt_mlp.2',
  'attn.to_qkv_mlp_proj': 'linear1',
  'attn.to_out': 'linear2',
};

/** The layer of FLUX.2 or Z-Image that a layer of diffusers is, or is a part of, in the files of their makers. */
function originalOf(path: string): { original: string; part: number } {
  const [, block, layer] = /^(.+?\.\d+)\.(.+)$/.exec(path)!;
  const prefix = `diffusion_model.${block.replace('single_transformer_blocks', 'single_blocks').replace('transformer_blocks', 'double_blocks')}`;
  const [, own, of] = /^(?:attn|attention)\.(?:to_([qkv])|add_([qkv])_proj)$/.exec(layer) ?? [];
  const letter = own ?? of;
  if (letter !== undefined) {
    const qkv = layer.startsWith('attention.') ? 'attention.qkv' : own ? 'img_attn.qkv' : 'txt_attn.qkv';
    return { original: `${prefix}.${qkv}`, part: 'qkv'.indexOf(letter) };
  }
  return { original: `${prefix}.${ofSides[layer] ?? layer.replace('attention.to_out.0', 'attention.out')}`, part: 0 };
}
