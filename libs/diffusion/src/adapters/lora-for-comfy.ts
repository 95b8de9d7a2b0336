import { Readable } from 'node:stream';
import { safetensorsHeader } from '../safetensors/write-safetensors';
import { countOf, type NamedTensor, type NamedTensors, readValues } from '../weights/named-tensor';
import { originalLayer, type PartOfOriginal } from '../weights/original-transformer-names';
import { readSafetensors } from '../weights/safetensors-file';

/** A tensor of a file that is written, whose values are read when their turn comes. */
interface WrittenTensor {
  shape: readonly number[];
  values: () => Promise<Float32Array>;
}

/** The two factors of a layer, and which part of a layer of the other program it is. */
interface Layer extends Omit<PartOfOriginal, 'path'> {
  a: NamedTensor;
  b: NamedTensor;
}

/**
 * A LoRA that was trained here as ComfyUI reads it: of a U-Net in the names of kohya's scripts, of a transformer in
 * those of its original program and with peft's names of factors, which diffusers and other trainers read too.
 * Embeddings of a word have no other names. Values are read as the stream is, a tensor at a time.
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
      const isTransformer = model === 'transformer';
      const { path: to, ...part } = isTransformer ? originalLayer(path) : { path, index: 0, count: 1 };
      const original = isTransformer ? `diffusion_model.${to}` : kohyaOf(model, path, isXl);
      const b = tensors.get(`${model}.${path}.lora_B.weight`)!;
      layers.set(original, [...(layers.get(original) ?? []), { a, b, ...part }]);
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

/**
 * The factors of a layer. Of one that joins several of the model's they are stacked: each part of the outputs has
 * factors of its own, and zeros beside them.
 */
function factorsOf(layers: readonly Layer[]): [WrittenTensor, WrittenTensor] {
  const [{ a, b, count }] = layers;
  if (count === 1)
    return [
      { shape: a.shape, values: () => readValues(a) },
      { shape: b.shape, values: () => readValues(b) },
    ];
  const [rank, ...into] = a.shape;
  const [out] = b.shape;
  const all = rank * layers.length;
  const stacked = async (): Promise<Float32Array> => {
    const values = new Float32Array(all * countOf(into));
    for (const [i, layer] of layers.entries()) values.set(await readValues(layer.a), i * rank * countOf(into));
    return values;
  };
  const spread = async (): Promise<Float32Array> => {
    const values = new Float32Array(count * out * all);
    for (const [i, layer] of layers.entries()) {
      const own = await readValues(layer.b);
      for (let row = 0; row < out; row++)
        values.set(own.subarray(row * rank, (row + 1) * rank), (layer.index * out + row) * all + i * rank);
    }
    return values;
  };
  return [
    { shape: [all, ...into], values: stacked },
    { shape: [count * out, all], values: spread },
  ];
}

/** `lora_unet_down_blocks_0_attentions_0_proj_in`; XL's text encoders are numbered. */
function kohyaOf(model: string, path: string, isXl: boolean): string {
  const names: Readonly<Record<string, string>> = {
    unet: 'unet',
    text_encoder: isXl ? 'te1' : 'te',
    text_encoder_2: 'te2',
  };
  return `lora_${names[model]}_${path.replaceAll('.', '_')}`;
}
