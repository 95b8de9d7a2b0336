import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Tensor } from 'onnxruntime-node';
import {
  fitAdapter,
  foreseenBytes,
  inspectWeights,
  loadAdapter,
  type LoadedAdapter,
  ModelSession,
  readAdapter,
  readModelFolder,
  Pipeline,
  Trainer,
} from '@app/diffusion';
import { AdamW } from '../../libs/diffusion/src/training/adam-w';
import { readTrainable } from '../../libs/diffusion/src/training/trainable';
import { names, trainingGraph } from '../../libs/diffusion/src/training/training-graph';
import { placeGraph } from '../../libs/diffusion/src/sessions/placed-graph';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFamily, unpackTransformerModel } from '../support/families';

const folder = mkdtempSync(join(tmpdir(), 'training-'));
afterAll(() => rmSync(folder, { recursive: true }));

const [rank, rate] = [3, 1e-3];

type Trained = Partial<Parameters<typeof trainingGraph>[1]>;

const [texts, word]: Trained[] = [{ textEncoders: true }, { kind: 'textual_inversion', vectors: 2 }];

/** Recordings, and what each of them trains. */
const cases: [string, string, Trained][] = [
  ['sd15, all layers', 'sd15', { layers: 'all' }],
  ['sd21, attention layers', 'sd21', {}],
  ['sdxl, attention layers', 'sdxl', {}],
  ...['sd15', 'sd21', 'sdxl'].flatMap((family): [string, string, Trained][] => [
    [`${family}, text encoders too`, `${family}-texts`, texts],
    [`a word of ${family}`, `${family}-word`, word],
  ]),
];

/** The same of transformers. */
const transformers = ['flux2-klein', 'z-image'];
for (const model of transformers)
  cases.push(
    [`${model}, attention layers`, model, {}],
    [`${model}, layers of feed-forward too`, `${model}-all`, { layers: 'all' }],
  );

/** One of each kind that is trained, and each family: a graph of it takes seconds to open. */
const computedAgain = ['sd15', 'sdxl-texts', 'sd21-word', 'flux2-klein-all', 'z-image-all'];

/** Unpacks the model of a recording. @returns its folder */
async function modelOf(name: string): Promise<string> {
  const transformer = transformers.find((model) => name.startsWith(model));
  const family = transformer ?? name.split('-')[0];
  const model = join(folder, family, 'model');
  await (transformer ? unpackTransformerModel(transformer, model) : unpackFamily(family, join(folder, family)));
  return model;
}

/** Inputs of torch, and its results. */
type Tensors = Record<string, Tensor>;

async function recordingOf(name: string): Promise<Tensors> {
  const file = join(folder, `${name}.safetensors`);
  writeFileSync(file, gunzipSync(readFileSync(join(__dirname, 'data/training', `${name}.safetensors.gz`))));
  const read = [...(await readSafetensors(file))].map(
    async ([name, tensor]) => [name, new Tensor('float32', await readValues(tensor), tensor.shape)] as const,
  );
  return Object.fromEntries(await Promise.all(read));
}

const valuesOf = (tensor: Tensor): Float32Array => tensor.data as Float32Array;

/** Length of the difference, as a share of the length of what is expected. */
function differenceOf(actual: Float32Array, expected: Float32Array): number {
  let [difference, length] = [0, 0];
  for (const [i, value] of expected.entries()) {
    difference += (actual[i] - value) ** 2;
    length += value ** 2;
  }
  return Math.sqrt(difference / length);
}

describe.each(cases)('Training of %s', (_, name, settings) => {
  let path: string;
  let recorded: Tensors;
  beforeAll(async () => {
    path = await modelOf(name);
    recorded = await recordingOf(name);
  });

  async function open(form: 'plain' | 'recomputed') {
    const model = await readTrainable(path);
    const [batch, channels, height, width] = recorded.sample.dims;
    const [, tokens] = (recorded.encoder_hidden_states ?? recorded['text_encoder.input_ids']).dims;
    const whole = { rank, layers: 'attention', form, ...settings } as const;
    const { graph, trained } = trainingGraph(model, whole, { batch, height, width, tokens });
    const session = await ModelSession.open(placeGraph(graph, model.denoiser.file), cpu);
    const inputs = trained.map(({ name }) => name);
    const factors = inputs.map((name) => Float32Array.from(valuesOf(recorded[name])));
    const {
      rotary_cos: cos,
      rotary_sin: sin,
      references,
    } = model.denoiser.training.feedsOf([0, 0], [channels, height, width], tokens);
    const given = {
      ...recorded,
      ...(cos && { rotary_cos: cos, rotary_sin: sin }),
      ...(references && { references }),
    } as unknown as Tensors;
    const run = () =>
      session.run(
        Object.fromEntries(
          graph.inputs.map(({ name, type, shape }) => {
            const at = inputs.indexOf(name);
            const values = at < 0 ? valuesOf(given[name]) : factors[at];
            const as = { int64: () => BigInt64Array.from([...values], BigInt), bool: () => Uint8Array.from(values) };
            const own = as[type as keyof typeof as]?.() ?? values;
            return [name, new Tensor(type as Exclude<typeof type, 'bfloat16'>, own, shape as number[])];
          }),
        ),
      );
    return { session, inputs, factors, run };
  }

  function expectGradients(inputs: string[], results: Tensors): void {
    const expected = Object.keys(recorded).filter((name) => name.startsWith('gradient/'));
    expect(inputs.map(names.gradientOf).sort()).toEqual(expected.sort());
    expect(differenceOf(valuesOf(results.loss), valuesOf(recorded.loss))).toBeLessThan(1e-5);
    for (const name of expected)
      expect([name, differenceOf(valuesOf(results[name]), valuesOf(recorded[name])) < 1e-4]).toEqual([name, true]);
  }

  it('has the gradients of torch, and its losses after each of ten steps of AdamW', async () => {
    const { session, inputs, factors, run } = await open('plain');
    expectGradients(inputs, await run());
    const adam = new AdamW(factors);
    const losses: number[] = [];
    for (const _ of valuesOf(recorded.losses)) {
      const results = await run();
      const rows = valuesOf(results.loss);
      losses.push(rows.reduce((sum, loss) => sum + loss, 0) / rows.length);
      adam.update(
        inputs.map((name) => valuesOf(results[names.gradientOf(name)])),
        rate,
      );
    }
    await session.release();
    for (const [i, loss] of valuesOf(recorded.losses).entries()) expect(Math.abs(losses[i] - loss)).toBeLessThan(1e-5);
  });

  if (computedAgain.includes(name))
    it('has the gradients of torch where values are computed again', async () => {
      const { session, inputs, run } = await open('recomputed');
      expectGradients(inputs, await run());
      await session.release();
    });
});

const settings = {
  ...{ steps: 6, seed: 3, rank: 2, batch: 2, learningRate: 3e-3, warmupSteps: 1, size: 64 },
  ...{ flips: true, offsetNoise: 0.1, captionDropout: 0.3, priorShare: 0.5 },
  priorPrompts: Array<string>(4).fill('a blue square'),
};
const pictureOf = (shade: number, width: number, height: number) => {
  const data = new Uint8Array(3 * width * height).map((_, i) => (i % (3 * width) < width ? shade : 255 - shade));
  return { image: { width, height, data }, caption: 'a red circle' };
};
const pictures = [40, 80, 120, 160].map((shade) => pictureOf(shade, 64, 64));

async function trained(trainer: Trainer): Promise<Uint8Array> {
  while (!trainer.done) await trainer.step();
  return trainer.weights();
}

describe('A trainer', () => {
  const model = () => join(folder, 'sd21', 'model');
  beforeAll(() => unpackFamily('sd21', join(folder, 'sd21')));

  it('goes on from a checkpoint of any step to the same weights, byte for byte', async () => {
    const whole = await Trainer.open(model(), pictures, settings);
    const checkpoints: Uint8Array[] = [];
    while (!whole.done) {
      checkpoints.push(whole.checkpoint());
      await whole.step();
    }
    const expected = Buffer.from(whole.weights());
    await whole.release();
    for (const checkpoint of [checkpoints[0], checkpoints[4]]) {
      const resumed = await Trainer.resume(model(), checkpoint);
      expect(Buffer.from(resumed.checkpoint()).equals(checkpoint)).toBe(true);
      expect(Buffer.from(await trained(resumed)).equals(expected)).toBe(true);
      await resumed.release();
    }
  });

  it('learns pictures of several sizes, and writes a LoRA that fits the model', async () => {
    const wide = [60, 100].map((shade) => pictureOf(shade, 128, 64));
    const trainer = await Trainer.open(model(), [...wide, ...pictures], { ...settings, steps: 30, learningRate: 1e-2 });
    const file = join(folder, 'lora.safetensors');
    writeFileSync(file, await trained(trainer));
    const { passed, loss, lossAtStart, drift } = await trainer.gate();
    expect(loss).toBeLessThan(lossAtStart);
    expect(drift).toBeGreaterThan(0);
    expect(passed).toBe(true);
    // It begins again from the model as it was.
    trainer.startOver();
    expect(await trainer.heldOutLoss()).toBe(lossAtStart);
    await trainer.release();
    const { tensors } = await readModelFolder(model());
    const { layers, note } = fitAdapter(await readAdapter(file), tensors);
    expect(layers.get('unet')!.size).toBe(32);
    expect(note).toBeUndefined();
  });

  it('refuses pictures and models that it cannot train with', async () => {
    await expect(Trainer.open(model(), [pictureOf(1, 65, 64)], settings)).rejects.toThrow(
      'Picture 1 is 65 x 64; edges are multiples of 64 pixels.',
    );
    await expect(Trainer.open(model(), [], settings)).rejects.toThrow('There are no pictures');
    await unpackFamily('lcm', join(folder, 'lcm'));
    await expect(Trainer.open(join(folder, 'lcm', 'model'), pictures, settings)).rejects.toThrow('distilled');
  });

  it('foresees more memory for larger pictures and batches, and less where values are computed again', async () => {
    const shapes = join(__dirname, '../../models/shapes');
    const stepOf = async (settings: Parameters<typeof foreseenBytes>[1]) =>
      (await foreseenBytes(shapes, settings)).step;
    const plain = await stepOf({ size: 512 });
    expect(await stepOf({ size: 768 })).toBeGreaterThan(plain);
    expect(await stepOf({ size: 512, batch: 8 })).toBeGreaterThan(plain);
    expect(await stepOf({ size: 512, form: 'recomputed' })).toBeLessThan(plain);
    expect(await stepOf({ size: 512, ...texts })).toBeGreaterThan(plain);
    expect(await stepOf({ size: 512, ...word })).toBeLessThan(plain);
    // All of its weights in float32.
    expect((await foreseenBytes(shapes)).weights).toBeGreaterThan(27e6);
  });
});

describe.each([
  ['the text encoders too', 'sdxl', { textEncoders: true }, { kind: 'lora' }],
  ['a word of two encoders', 'sdxl', word, { kind: 'textual_inversion', tokens: 2 }],
  ['a word', 'sd15', word, { kind: 'textual_inversion', tokens: 2 }],
] as const)('A trainer of %s', (_, family, more, summary) => {
  const model = join(folder, family, 'model');
  const own = { ...settings, ...more, token: 'zwx', initializerToken: 'x' };
  const file = join(folder, 'trained.safetensors');
  let pipeline: Pipeline;
  beforeAll(async () => {
    await unpackFamily(family, join(folder, family));
    pipeline = await Pipeline.load(model, cpu);
  });
  afterAll(() => pipeline.release());

  async function draw(prompt: string, adapter?: LoadedAdapter) {
    const adapters = adapter ? [{ adapter, scale: 1, token: 'zwx' }] : [];
    const request = { prompt, width: 64, height: 64, numInferenceSteps: 2, guidanceScale: 3, seeds: [1], adapters };
    return (await pipeline.generate(request)).images[0].data;
  }

  it('goes on from a checkpoint to weights that draw what their file draws', async () => {
    const trainer = await Trainer.open(model, pictures, own);
    // At first it changes nothing: a word means what another one does.
    expect(await draw('a zwx', trainer.adapter())).toEqual(await draw(summary.kind === 'lora' ? 'a zwx' : 'a x x'));
    await trainer.step();
    const checkpoint = trainer.checkpoint();
    const expected = await trained(trainer);
    const resumed = await Trainer.resume(model, checkpoint);
    expect(Buffer.from(resumed.checkpoint()).equals(checkpoint)).toBe(true);
    expect(Buffer.from(await trained(resumed)).equals(expected)).toBe(true);
    writeFileSync(file, expected);
    expect(await inspectWeights(file, model)).toEqual({ ...summary, unmatched: 0 });
    const read = await loadAdapter(fitAdapter(await readAdapter(file), (await readModelFolder(model)).tensors));
    const drawn = await draw('a zwx', read);
    expect(drawn).toEqual(await draw('a zwx', trainer.adapter()));
    expect(drawn).not.toEqual(await draw('a zwx'));
    // It begins again from the model as it was.
    const { lossAtStart } = await resumed.gate();
    resumed.startOver();
    expect(await resumed.heldOutLoss()).toBe(lossAtStart);
    await Promise.all([trainer.release(), resumed.release()]);
  });
});
