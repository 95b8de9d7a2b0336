import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FloatTensor, writeSafetensors } from '../safetensors/write-safetensors';
import { readValues } from '../weights/named-tensor';
import { readSafetensors } from '../weights/safetensors-file';
import { loraForComfy } from './lora-for-comfy';

const folder = mkdtempSync(join(tmpdir(), 'comfy-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** LoRAs of rank 2 of layers from 3 to 4 values, each with values of its own. */
const loraOf = (...paths: string[]): Map<string, FloatTensor> =>
  new Map(
    paths.flatMap((path, i) =>
      (['A', 'B'] as const).map((factor): [string, FloatTensor] => {
        const shape = factor === 'A' ? [2, 3] : [4, 2];
        const values = Float32Array.from({ length: shape[0] * shape[1] }, (_, at) => Math.sin(31 * i + at + 1));
        return [`${path}.lora_${factor}.weight`, { shape, values }];
      }),
    ),
  );

async function converted(tensors: Map<string, FloatTensor>): Promise<Map<string, FloatTensor>> {
  const [from, to] = ['from', 'to'].map((name) => join(folder, name));
  writeFileSync(from, writeSafetensors(tensors));
  const { stream, bytes } = await loraForComfy(from);
  const file = await buffer(stream);
  expect(file.length).toBe(bytes);
  writeFileSync(to, file);
  const read = [...(await readSafetensors(to))].map(
    async ([name, tensor]) => [name, { shape: tensor.shape, values: await readValues(tensor) }] as const,
  );
  return new Map(await Promise.all(read));
}

const product = (up: FloatTensor, down: FloatTensor): number[][] =>
  Array.from({ length: up.shape[0] }, (_, row) =>
    Array.from({ length: down.shape[1] }, (_, column) =>
      Array.from({ length: up.shape[1] }, (_, k) => k).reduce(
        (sum, k) => sum + up.values[row * up.shape[1] + k] * down.values[k * down.shape[1] + column],
        0,
      ),
    ),
  );

describe(loraForComfy, () => {
  it.each([
    [
      'unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0',
      'lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_out_0',
    ],
    [
      'text_encoder.text_model.encoder.layers.0.self_attn.q_proj',
      'lora_te_text_model_encoder_layers_0_self_attn_q_proj',
    ],
    ['transformer.transformer_blocks.3.attn.to_out.0', 'diffusion_model.double_blocks.3.img_attn.proj'],
    ['transformer.transformer_blocks.3.ff_context.linear_in', 'diffusion_model.double_blocks.3.txt_mlp.0'],
    ['transformer.single_transformer_blocks.12.attn.to_qkv_mlp_proj', 'diffusion_model.single_blocks.12.linear1'],
    ['transformer.single_transformer_blocks.12.attn.to_out', 'diffusion_model.single_blocks.12.linear2'],
    ['transformer.layers.0.attention.to_out.0', 'diffusion_model.layers.0.attention.out'],
    ['transformer.noise_refiner.1.feed_forward.w2', 'diffusion_model.noise_refiner.1.feed_forward.w2'],
  ])('names %s as the original program does, or kohya', async (path, original) => {
    const lora = loraOf(path);
    const isKohya = !path.startsWith('transformer.');
    const [down, up] = isKohya ? ['lora_down', 'lora_up'] : ['lora_A', 'lora_B'];
    expect(await converted(lora)).toEqual(
      new Map([
        [`${original}.${down}.weight`, lora.get(`${path}.lora_A.weight`)],
        [`${original}.${up}.weight`, lora.get(`${path}.lora_B.weight`)],
        ...(isKohya ? ([[`${original}.alpha`, { shape: [], values: Float32Array.of(2) }]] as const) : []),
      ]),
    );
  });

  it('numbers the text encoders of XL, and leaves embeddings as they are', async () => {
    const [path, other] = ['text_encoder.text_model.a', 'text_encoder_2.text_model.a'];
    const names = [...(await converted(loraOf(path, other))).keys()];
    expect(names.filter((name) => name.endsWith('.alpha'))).toEqual([
      'lora_te1_text_model_a.alpha',
      'lora_te2_text_model_a.alpha',
    ]);
    const word = new Map([['clip_l', { shape: [2, 3], values: Float32Array.of(1, 2, 3, 4, 5, 6) }]]);
    expect(await converted(word)).toEqual(word);
  });

  it.each([
    ['transformer.transformer_blocks.0.attn', ['to_q', 'to_k', 'to_v'], 'diffusion_model.double_blocks.0.img_attn.qkv'],
    [
      'transformer.transformer_blocks.0.attn',
      ['add_q_proj', 'add_k_proj', 'add_v_proj'],
      'diffusion_model.double_blocks.0.txt_attn.qkv',
    ],
    ['transformer.layers.1.attention', ['to_q', 'to_k', 'to_v'], 'diffusion_model.layers.1.attention.qkv'],
  ])('makes one of what three layers of %s add, %j', async (block, names, original) => {
    const lora = loraOf(...names.map((name) => `${block}.${name}`));
    const found = await converted(lora);
    const factor = (name: string) => found.get(`${original}.${name}`)!;
    expect([factor('lora_A.weight').shape, factor('lora_B.weight').shape]).toEqual([
      [6, 3],
      [12, 6],
    ]);
    expect(found.size).toBe(2);
    const ofLayers = names.flatMap((name) => {
      const [b, a] = ['B', 'A'].map((each) => lora.get(`${block}.${name}.lora_${each}.weight`)!);
      return product(b, a);
    });
    expect(product(factor('lora_B.weight'), factor('lora_A.weight'))).toEqual(ofLayers);
  });
});
