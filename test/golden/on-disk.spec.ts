import { cp, link, mkdir, mkdtemp, open, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mergeLora, OnnxModel, StableDiffusionPipeline } from '@app/diffusion';
import type { ModelFacts, TextToImageRequest } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { withShapes } from '../support/onnx';
import { encodeSafetensors } from '../support/safetensors';
import type { TensorToWrite } from '../support/safetensors';

const tiny = (name: string) => join(__dirname, 'models/tiny', name);
const loras = join(__dirname, 'models/lora');
const scheduler = 'scheduler/scheduler_config.json';

/** What a caller gets of a model folder: a picture, or one sentence. */
interface Row {
  what: string;
  base?: 'sd15-diffusers' | 'sd21-optimum' | 'lcm' | 'lcm-int8';
  change?: (folder: string) => Promise<unknown>;
  request?: Partial<TextToImageRequest>;
  facts?: Partial<ModelFacts>;
  /** Of the error; without one it is a picture. */
  sentence?: string;
}

const edit = async (file: string, change: object) =>
  writeFile(file, JSON.stringify({ ...(JSON.parse(await readFile(file, 'utf8')) as object), ...change }));
const redeclare = async (file: string, shapes: Parameters<typeof withShapes>[1]) =>
  writeFile(file, withShapes(await readFile(file), shapes));

/** The U-Net's weights in an external file, behind so many bytes of nothing: it is as large as that, but takes no disk. */
async function moveWeights(folder: string, offset: number): Promise<void> {
  const file = join(folder, 'unet/model.onnx');
  const model = OnnxModel.open(file);
  const weights = await open(join(folder, 'unet/model.onnx_data'), 'w');
  const places = new Map<string, { location: string; offset: number; length: number }>();
  for (const { name, dataType, data } of model.initializers.values()) {
    if (dataType !== 1 || data?.end === undefined || data.end - data.begin < 1024) continue;
    const length = data.end - data.begin;
    await weights.write((await readFile(file)).subarray(data.begin, data.end), 0, length, offset);
    places.set(name, { location: 'model.onnx_data', offset, length });
    offset += Math.ceil(length / 4096) * 4096;
  }
  await weights.close();
  await model.write(join(folder, 'unet/large.onnx'), places, new Set());
  await rename(join(folder, 'unet/large.onnx'), file);
}

/** Every file becomes a link into a folder of blobs beside the model, as in the cache of the hub's clients. */
async function likeHub(folder: string): Promise<void> {
  const blobs = join(dirname(folder), 'blobs');
  await mkdir(blobs);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const blob = join(blobs, `${(await readdir(blobs)).length}`);
    await rename(file, blob);
    await symlink(blob, file);
  }
}

const fixed = { sample: ['batch', 4, 8, 8], out_sample: ['batch', 4, 8, 8] };
const sizes = { width: 64, height: 64 };

const rows: Row[] = [
  { what: "diffusers' export with a PNDM scheduler", base: 'sd15-diffusers' },
  { what: "optimum's export, whose timestep has rank 0", base: 'sd21-optimum' },
  {
    what: 'SD 2.1 with 768 pixels and v-prediction',
    base: 'sd21-optimum',
    change: (folder) => edit(join(folder, 'unet/config.json'), { sample_size: 96 }),
    facts: { nativeSize: 768, predictionType: 'v_prediction' },
  },
  {
    what: 'sd-turbo: one step without guidance, spaced from the end',
    change: (folder) =>
      edit(join(folder, scheduler), { _class_name: 'EulerDiscreteScheduler', timestep_spacing: 'trailing' }),
    request: { numInferenceSteps: 1, guidanceScale: 1 },
  },
  { what: 'a U-Net distilled to take the guidance scale', base: 'lcm' },
  { what: 'a U-Net of int8', base: 'lcm-int8' },
  {
    what: 'a part above 2 GiB',
    base: 'lcm',
    change: (folder) => moveWeights(folder, 2 ** 31 + 4096),
  },
  {
    what: 'a part above 2 GiB whose graph repeats names',
    change: async (folder) => {
      const file = await open(join(folder, 'unet/weights.pb'), 'r+');
      await file.truncate(2 ** 31 + 4096);
      await file.close();
    },
  },
  {
    what: 'parts under other names',
    base: 'sd15-diffusers',
    change: async (folder) => {
      for (const part of ['text_encoder', 'unet', 'vae_decoder'])
        await rename(join(folder, part, 'model.onnx'), join(folder, part, `${part}_fp32.onnx`));
    },
  },
  { what: "a folder of links into the hub's cache", base: 'sd15-diffusers', change: likeHub },
  { what: "optimum's folder of links into the hub's cache", base: 'sd21-optimum', change: likeHub },
  {
    what: 'weights that the graph itself keeps elsewhere',
    base: 'lcm',
    change: async (folder) => {
      await moveWeights(folder, 0);
      const file = join(folder, 'unet/model.onnx');
      const graph = await readFile(file);
      await link(join(folder, 'unet/model.onnx_data'), join(folder, 'onnx_weights'));
      await writeFile(
        file,
        Buffer.from(graph.toString('latin1').replaceAll('model.onnx_data', '../onnx_weights'), 'latin1'),
      );
    },
    sentence:
      '<folder>/unet/model.onnx is no whole ONNX model (the initializer "conv_in.weight" is in the file "../onnx_weights", which is not beside the model).',
  },
  {
    what: 'graphs for one size, asked for that size',
    change: (folder) => redeclare(join(folder, 'unet/model.onnx'), fixed),
    facts: { fixedSize: sizes },
  },
  {
    what: 'graphs for one size, asked for another',
    change: (folder) => redeclare(join(folder, 'unet/model.onnx'), fixed),
    request: { height: 96 },
    sentence: 'The height is 96; this model was exported for a height of 64 pixels.',
  },
  {
    what: 'a VAE for one size, asked for another',
    change: (folder) => redeclare(join(folder, 'vae_decoder/model.onnx'), { latent_sample: ['batch', 4, 8, 16] }),
    sentence: 'The width is 64; this model was exported for a width of 128 pixels.',
  },
  {
    what: 'a U-Net and a VAE for different sizes',
    change: async (folder) => {
      await redeclare(join(folder, 'unet/model.onnx'), fixed);
      await redeclare(join(folder, 'vae_decoder/model.onnx'), { latent_sample: ['batch', 4, 16, 16] });
    },
    sentence: '<folder>/vae_decoder/model.onnx takes latents of height 16, and the U-Net gives 8.',
  },
  {
    what: 'a U-Net for one length of prompts, given a longer one',
    change: (folder) => redeclare(join(folder, 'unet/model.onnx'), { encoder_hidden_states: ['batch', 77, 32] }),
    request: { prompt: 'a red circle '.repeat(40) },
    facts: { fixedChunks: 1 },
    sentence: 'The prompt takes 2 chunks of 75 tokens; at most 1 can be drawn.',
  },
  {
    what: 'a scheduler of a class that nobody knows',
    change: (folder) => edit(join(folder, scheduler), { _class_name: 'FooScheduler' }),
    sentence: 'The scheduler class "FooScheduler" is not supported; name another scheduler.',
  },
  {
    what: 'that folder, asked for another scheduler',
    change: (folder) => edit(join(folder, scheduler), { _class_name: 'FooScheduler' }),
    request: { scheduler: 'euler' },
    facts: { scheduler: 'FooScheduler' },
  },
  ...[
    'DDIMScheduler',
    'DDPMScheduler',
    'PNDMScheduler',
    'LMSDiscreteScheduler',
    'EulerDiscreteScheduler',
    'HeunDiscreteScheduler',
    'EulerAncestralDiscreteScheduler',
    'DPMSolverMultistepScheduler',
    'DPMSolverSinglestepScheduler',
    'KDPM2DiscreteScheduler',
    'KDPM2AncestralDiscreteScheduler',
    'DEISMultistepScheduler',
    'UniPCMultistepScheduler',
    'DPMSolverSDEScheduler',
    'EDMEulerScheduler',
    'LCMScheduler',
    'TCDScheduler',
  ].map((name) => ({
    what: `a model whose own scheduler is ${name}`,
    change: (folder: string) => edit(join(folder, scheduler), { _class_name: name }),
  })),
];

let scratch: string;
let folder: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-disk-'));
  folder = join(scratch, 'model');
});
afterEach(() => rm(scratch, { recursive: true }));

async function place(base: NonNullable<Row['base']>): Promise<void> {
  const isDistilled = base.startsWith('lcm');
  await cp(tiny(isDistilled ? 'sd15-diffusers' : base), folder, { recursive: true });
  if (!isDistilled) return;
  await rm(join(folder, 'unet'), { recursive: true });
  await cp(tiny('lcm'), folder, { recursive: true });
  if (base !== 'lcm') await cp(tiny(base), folder, { recursive: true });
}

async function draw(path: string, request: Partial<TextToImageRequest> = {}) {
  const pipeline = await StableDiffusionPipeline.load(path, cpu);
  try {
    const { facts } = pipeline;
    const whole = { prompt: 'a', ...sizes, numInferenceSteps: 3, guidanceScale: 5, seeds: [1], ...request };
    return { facts, drawn: await pipeline.generate(whole) };
  } finally {
    await pipeline.release();
  }
}

describe('what people have on disk', () => {
  it.each(rows)('$what', async ({ base = 'sd15-diffusers', change, request, facts, sentence }) => {
    await place(base);
    await change?.(folder);
    const outcome = draw(folder, request);
    if (sentence !== undefined) return expect(outcome).rejects.toThrow(new Error(sentence.replace('<folder>', folder)));
    const { drawn, facts: found } = await outcome;
    expect(drawn.images[0]).toMatchObject(sizes);
    if (facts) expect(found).toMatchObject(facts);
  });
});

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

describe('a LoRA on disk', () => {
  const merge = async (tensors: Record<string, TensorToWrite>, to: string) => {
    const lora = join(scratch, 'lora.safetensors');
    await writeFile(lora, encodeSafetensors(tensors));
    await mergeLora({ baseFolder: folder, lora, scale: 1, folder: join(scratch, to) });
    return (await draw(join(scratch, to))).drawn.latents[0];
  };

  it('draws the same in every dialect', async () => {
    await place('lcm');
    const plain = (await draw(folder)).drawn.latents[0];
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
    expect(drawn[0]).not.toEqual(plain);
    for (const latents of drawn) expect(latents).toEqual(drawn[0]);
  });

  it('is merged into a part under another name', async () => {
    await place('lcm');
    const tensors = factors(inKohya, ['lora_down', 'lora_up'], square);
    const expected = await merge(tensors, 'one');
    await rename(join(folder, 'unet/model.onnx'), join(folder, 'unet/unet_fp32.onnx'));
    expect(await merge(tensors, 'other')).toEqual(expected);
  });

  it("is merged into a folder of links into the hub's cache", async () => {
    await place('lcm');
    const tensors = factors(inKohya, ['lora_down', 'lora_up'], square);
    const expected = await merge(tensors, 'one');
    await likeHub(folder);
    expect(await merge(tensors, 'other')).toEqual(expected);
  });

  it('is merged into a part above 2 GiB', async () => {
    await place('lcm');
    const tensors = factors(inKohya, ['lora_down', 'lora_up'], square);
    const expected = await merge(tensors, 'one');
    await moveWeights(folder, 2 ** 31 + 4096);
    expect(await merge(tensors, 'other')).toEqual(expected);
  });

  it.each<[string, string, string]>([
    ['LoHa', 'hada_w1_a', 'is a LoHa; only plain LoRA is accepted.'],
    ['LoKr', 'lokr_w1', 'is a LoKr; only plain LoRA is accepted.'],
    ['DoRA', 'dora_scale', 'is a DoRA; only plain LoRA is accepted.'],
    ['full difference', 'diff', 'is a full weight difference; only plain LoRA is accepted.'],
  ])('is refused by name if it is a %s', async (_, ending, sentence) => {
    await place('lcm');
    const key = `${inKohya}.${ending}`;
    const tensors = {
      ...factors(inKohya, ['lora_down', 'lora_up'], square),
      [key]: { shape: [1], values: [1] },
    };
    await expect(merge(tensors, 'merged')).rejects.toThrow(`The key "${key}" ${sentence}`);
  });

  it('is refused by a U-Net of int8', async () => {
    await place('lcm-int8');
    const merging = merge(factors(inKohya, ['lora_down', 'lora_up'], square), 'merged');
    await expect(merging).rejects.toThrow(
      "The base model's unet is quantised to integers, so that no LoRA can be merged into it.",
    );
  });

  it('is merged as LCM-LoRA is, over every kind of layer', async () => {
    await place('lcm');
    const options = { baseFolder: folder, lora: join(loras, 'lcm-kohya.safetensors'), scale: 1 };
    expect(await mergeLora({ ...options, folder: join(scratch, 'merged') })).toBeGreaterThan(30);
  });
});
