import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mergeLora } from '@app/diffusion';
import { KeptSessions } from '../support/kept-sessions';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';
import { drawFrom, likeHub, moveWeights, placeModel } from '../support/tiny-models';

/** Factors of rank 2 for a layer of the U-Net or the text encoder, with the endings of a dialect. */
const factors = (name: string, [down, up]: [string, string], [out, width]: [number, number]) => {
  const values = (count: number) => Array.from({ length: count }, (_, i) => Math.sin(i + 1));
  return {
    [`${name}.${down}.weight`]: { shape: [2, width], values: values(2 * width) },
    [`${name}.${up}.weight`]: { shape: [out, 2], values: values(2 * out) },
  } satisfies Record<string, TensorToWrite>;
};
const attention = 'down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q';
const inKohya = `lora_unet_${attention.replaceAll('.', '_')}`;
const square: [number, number] = [8, 8];

let scratch: string;
let folder: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-disk-'));
  folder = join(scratch, 'model');
});
afterEach(() => rm(scratch, { recursive: true }));

describe('a LoRA on disk', () => {
  const sessions = new KeptSessions();
  afterAll(() => sessions.release());

  const merge = async (tensors: Record<string, TensorToWrite>, to: string) => {
    const lora = join(scratch, 'lora.safetensors');
    await writeFile(lora, encodeSafetensors(tensors));
    await mergeLora({ baseFolder: folder, lora, scale: 1, folder: join(scratch, to) });
    return (await drawFrom(join(scratch, to), {}, sessions.options)).drawn.latents[0];
  };

  it('draws the same in every dialect', async () => {
    await placeModel('lcm', folder);
    const plain = (await drawFrom(folder, {}, sessions.options)).drawn.latents[0];
    const dialects = {
      kohya: factors(inKohya, ['lora_down', 'lora_up'], square),
      onetrainer: factors(`lora_unet.${attention}`, ['lora_down', 'lora_up'], square),
      ldm: factors('lora_unet_input_blocks_1_1_transformer_blocks_0_attn1_to_q', ['lora_down', 'lora_up'], square),
      ldmInFull: factors(
        'diffusion_model.input_blocks.1.1.transformer_blocks.0.attn1.to_q',
        ['lora_A', 'lora_B'],
        square,
      ),
      peft: factors(`unet.${attention}`, ['lora_A', 'lora_B'], square),
      diffusers: factors(`unet.${attention}`, ['lora.down', 'lora.up'], square),
    };
    const drawn = [];
    for (const [name, tensors] of Object.entries(dialects)) drawn.push(await merge(tensors, name));
    expect(drawn[0]).not.toStrictEqual(plain);
    for (const latents of drawn) expect(latents).toStrictEqual(drawn[0]);
  });

  it.each<[string, () => Promise<void>]>([
    ['a part under another name', () => rename(join(folder, 'unet/model.onnx'), join(folder, 'unet/unet_fp32.onnx'))],
    ["a folder of links into the hub's cache", () => likeHub(folder)],
    ['a part above 2 GiB', () => moveWeights(folder, 2 ** 31 + 4096)],
  ])('is merged into %s', async (_, change) => {
    await placeModel('lcm', folder);
    const tensors = factors(inKohya, ['lora_down', 'lora_up'], square);
    const expected = await merge(tensors, 'one');
    await change();
    expect(await merge(tensors, 'other')).toStrictEqual(expected);
  });

  it.each<[string, string, string]>([
    ['LoHa', 'hada_w1_a', 'is a LoHa; only plain LoRA is accepted.'],
    ['LoKr', 'lokr_w1', 'is a LoKr; only plain LoRA is accepted.'],
    ['DoRA', 'dora_scale', 'is a DoRA; only plain LoRA is accepted.'],
    ['full difference', 'diff', 'is a full weight difference; only plain LoRA is accepted.'],
  ])('is refused by name if it is a %s', async (_, ending, sentence) => {
    await placeModel('lcm', folder);
    const key = `${inKohya}.${ending}`;
    const tensors = {
      ...factors(inKohya, ['lora_down', 'lora_up'], square),
      [key]: { shape: [1], values: [1] },
    };
    await expect(merge(tensors, 'merged')).rejects.toThrow(`The key "${key}" ${sentence}`);
  });

  it('is refused by a U-Net of int8', async () => {
    await placeModel('lcm-int8', folder);
    const merging = merge(factors(inKohya, ['lora_down', 'lora_up'], square), 'merged');
    await expect(merging).rejects.toThrow(
      "The base model's unet is quantised to integers, so that no LoRA can be merged into it.",
    );
  });

  it('is merged as LCM-LoRA is, over every kind of layer', async () => {
    await placeModel('lcm', folder);
    const options = { baseFolder: folder, lora: join(__dirname, 'models/lora/lcm-kohya.safetensors'), scale: 1 };
    expect(await mergeLora({ ...options, folder: join(scratch, 'merged') })).toBeGreaterThan(30);
  });
});
