import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { encodeSafetensors } from '../../../../test/support/safetensors';
import { ModelFolderError } from '../errors';
import { createScheduler } from '../schedulers';
import type { VaeFiles } from '../autoencoders/vae';
import type { ClipConditionerFiles } from '../conditioners/clip-conditioner';
import type { UnetFiles } from '../denoisers/unet';
import { type ModelFolder, readModelParts } from './model-folder';
import { problemsOfSchedulers, readModelScheduler } from './model-scheduler';

type Shapes = Record<string, number[]>;

const root = mkdtempSync(join(tmpdir(), 'model-folders-'));
afterAll(() => rmSync(root, { recursive: true }));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'model-'));
});

const write = (name: string, content: string | Buffer): void => {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), content);
};
const json = (name: string, value: object): void => write(name, JSON.stringify(value));

const encodersOf = ({ conditioner }: ModelFolder) => (conditioner as ClipConditionerFiles).encoders;

/** Writes tensors that are all zeros. */
const weights = (name: string, ...shapes: Shapes[]): void => {
  const zeros = (shape: number[]) => new Float32Array(shape.reduce((product, length) => product * length, 1));
  const all = Object.entries(Object.assign({}, ...shapes) as Shapes);
  write(name, encodeSafetensors(Object.fromEntries(all.map(([key, shape]) => [key, { shape, values: zeros(shape) }]))));
};

/** The tensors that a part is recognised by, in the names of original checkpoints. */
const unet = (into = 4): Shapes => ({
  'model.diffusion_model.input_blocks.0.0.weight': [8, into, 3, 3],
  'model.diffusion_model.out.2.weight': [4, 8, 3, 3],
});
const xl: Shapes = { 'model.diffusion_model.label_emb.0.0.weight': [16, 12] };
const vae: Shapes = { 'first_stage_model.decoder.conv_in.weight': [8, 4, 3, 3] };
const clip: Shapes = { 'cond_stage_model.transformer.text_model.embeddings.token_embedding.weight': [4, 8] };
const openClip: Shapes = { 'cond_stage_model.model.token_embedding.weight': [4, 8] };
const first: Shapes = { 'conditioner.embedders.0.transformer.text_model.embeddings.token_embedding.weight': [4, 8] };
const second: Shapes = {
  'conditioner.embedders.1.model.positional_embedding': [4, 8],
  'conditioner.embedders.1.model.token_embedding.weight': [4, 8],
};

function diffusers(): void {
  weights('unet/diffusion_pytorch_model.fp16.safetensors', {
    'conv_in.weight': [8, 4, 3, 3],
    'conv_out.weight': [4, 8, 3, 3],
  });
  weights('vae/diffusion_pytorch_model.safetensors', { 'decoder.conv_in.weight': [8, 4, 3, 3] });
  weights('text_encoder/model.safetensors', { 'text_model.embeddings.token_embedding.weight': [4, 8] });
}

describe(readModelParts.name, () => {
  it.each<[string, Shapes[], object]>([
    ['1.x', [unet(), vae, clip], { family: 'sd1', size: 512, scheduler: 'PNDMScheduler', prediction: 'epsilon' }],
    ['2.x', [unet(), vae, openClip], { family: 'sd2', size: 768, scheduler: 'DDIMScheduler', skips: [1] }],
    ['XL', [unet(), xl, vae, first, second], { family: 'sdxl', size: 1024, skips: [1, 1], pads: ['end', 'zero'] }],
    ['XL that predicts velocity', [unet(), xl, vae, first, second, { v_pred: [0] }], { prediction: 'v_prediction' }],
    ['1.x for inpainting', [unet(9), vae, clip], { family: 'sd1', kind: 'inpainting' }],
    ['1.x that changes pictures', [unet(8), vae, clip], { family: 'sd1', kind: 'instruct-pix2pix' }],
  ])('recognises a checkpoint of %s by its tensors', async (_, shapes, expected) => {
    weights('any-name.safetensors', ...shapes);
    const model = await readModelParts(folder);
    expect({
      family: model.family.name,
      kind: model.kind,
      size: model.nativeSize,
      scheduler: model.schedulerJson._class_name,
      prediction: model.schedulerJson.prediction_type,
      skips: encodersOf(model).map(({ use }) => use.skip),
      pads: encodersOf(model).map(({ tokens }) => (tokens.frame([]).at(-1) === 0 ? 'zero' : 'end')),
    }).toMatchObject({ kind: 'text-to-image', ...expected });
  });

  it('recognises a folder of diffusers by its configurations', async () => {
    diffusers();
    json('text_encoder/config.json', { hidden_act: 'gelu' });
    json('unet/config.json', { sample_size: 96, attention_head_dim: [1] });
    json('vae/config.json', { scaling_factor: 0.5, shift_factor: null });
    json('scheduler/scheduler_config.json', { _class_name: 'EulerDiscreteScheduler', num_train_timesteps: 1000 });
    const model = await readModelParts(folder);
    expect(model).toMatchObject({ family: { name: 'sd2' }, nativeSize: 768 });
    expect((model.autoencoder as VaeFiles).use.scaling).toEqual({ factor: 0.5, shift: 0 });
    expect((model.denoiser as UnetFiles).config.numAttentionHeads).toEqual([1]);
    expect(model.schedulerJson).toMatchObject({ _class_name: 'EulerDiscreteScheduler' });
    // Its text encoder has no layer that is left out.
    expect(encodersOf(model).map(({ use }) => use.skip)).toEqual([0]);
  });

  it('takes the scheduler of a fine-tune by flow matching, which has no betas', async () => {
    weights('model.safetensors', unet(), vae, clip);
    json('scheduler/scheduler_config.json', { _class_name: 'FlowMatchEulerDiscreteScheduler', beta_start: 'none' });
    const model = await readModelParts(folder);
    expect(problemsOfSchedulers(model).own).toBeUndefined();
    expect(problemsOfSchedulers(model).named.ddim).toBe('It does not draw by flow matching.');
  });

  it('refuses a scheduler with betas where the family draws by flow matching', async () => {
    const usual = { _class_name: 'FlowMatchEulerDiscreteScheduler' };
    expect(await readModelScheduler(folder, { usual, fixed: {} })).toEqual(usual);
    json('scheduler/scheduler_config.json', { _class_name: 'DDIMScheduler' });
    await expect(readModelScheduler(folder, { usual, fixed: {} })).rejects.toThrow(/DDIMScheduler is not for flow/);
  });

  it('starts at timestep 1 and does not clip latents, whatever its scheduler says', async () => {
    diffusers();
    const own = { _class_name: 'DDIMScheduler', clip_sample: true, steps_offset: 0 };
    json('scheduler/scheduler_config.json', own);
    const { schedulerJson } = await readModelParts(folder);
    const scheduler = createScheduler(undefined, schedulerJson);
    scheduler.setTimesteps(2);
    expect([...scheduler.timesteps]).toEqual([501, 1]);
    expect(scheduler.step(Float32Array.of(-9), 501, Float32Array.of(9))[0]).toBeGreaterThan(9);
  });

  it('takes what darkroom.json says of a model before what its family does', async () => {
    weights('model.safetensors', unet(), vae, openClip);
    json('darkroom.json', { size: 512, prediction_type: 'epsilon', clip_skip: 2, steps: 4 });
    const model = await readModelParts(folder);
    expect(model).toMatchObject({ nativeSize: 512, defaults: { steps: 4 } });
    expect(model.schedulerJson.prediction_type).toBe('epsilon');
    expect(encodersOf(model)[0].use.skip).toBe(2);
  });

  it('refuses a clip_skip that leaves out more layers than there are, as a fault of darkroom.json', async () => {
    diffusers();
    const layers = [0, 1, 2].map((layer) => ({ [`text_model.encoder.layers.${layer}.mlp.fc1.weight`]: [32, 8] }));
    const embedding = { 'text_model.embeddings.token_embedding.weight': [4, 8] };
    weights('text_encoder/model.safetensors', embedding, ...layers);
    json('darkroom.json', { clip_skip: 4 });
    expect(encodersOf(await readModelParts(folder))[0].use.skip).toBe(3);
    json('darkroom.json', { clip_skip: 5 });
    const { file, reason } = (await readModelParts(folder).catch(
      (error: ModelFolderError) => error,
    )) as ModelFolderError;
    expect(file).toBe(join(folder, 'darkroom.json'));
    expect(reason).toBe('has a clip_skip of 5, and a text encoder of 3 layers takes one of at most 4');
  });

  it('takes the autoencoder beside a checkpoint, whichever names it has', async () => {
    weights('model.safetensors', unet(), vae, clip);
    weights('vae.safetensors', { 'decoder.conv_in.weight': [16, 4, 3, 3] });
    const { autoencoder } = await readModelParts(folder);
    expect(autoencoder.tensors.get('decoder.conv_in.weight')!.shape[0]).toBe(16);
    expect(autoencoder.file).toBe(join(folder, 'vae.safetensors'));
  });

  it('reads weights where a link leads, as in the cache of the hub', async () => {
    weights('model.safetensors', unet(), vae, clip);
    const blob = join(root, 'blob');
    renameSync(join(folder, 'model.safetensors'), blob);
    symlinkSync('../blob', join(folder, 'model.safetensors'));
    await expect(readModelParts(folder)).resolves.toMatchObject({ family: { name: 'sd1' } });
  });

  it.each<[string, () => void, RegExp]>([
    ['nothing in it', () => undefined, /has no model in it/],
    [
      'a U-Net alone',
      () => weights('model.safetensors', { 'input_blocks.0.0.weight': [8, 4, 3, 3] }),
      /lacks the text encoder \(text_encoder\) and the autoencoder \(vae\) and has only the U-Net \(unet\)/,
    ],
    [
      'a FLUX.2 without its transformer',
      () => {
        diffusers();
        rmSync(join(folder, 'unet'), { recursive: true });
        json('model_index.json', { _class_name: 'Flux2KleinPipeline' });
      },
      /lacks the transformer \(transformer\) and has only the text encoder \(text_encoder\), autoencoder \(vae\)/,
    ],
    [
      'an XL without its second text encoder',
      () => weights('model.safetensors', unet(), xl, vae, first),
      /lacks the second text encoder/,
    ],
    [
      'two checkpoints',
      () => ['a', 'b'].forEach((name) => weights(`${name}.safetensors`, unet())),
      /several checkpoints \(a\.safetensors, b\.safetensors\)/,
    ],
    ['a LoRA', () => weights('model.safetensors', { 'lora_unet_x.lora_up.weight': [1, 1] }), /is a LoRA/],
    [
      'a U-Net of other channels',
      () => weights('model.safetensors', unet(5), vae, clip),
      /takes 5 channels and gives 4/,
    ],
    [
      'a checkpoint that is cut short',
      () => {
        weights('model.safetensors', unet(), vae, clip);
        truncateSync(join(folder, 'model.safetensors'), 900);
      },
      /cannot be read: .*outside the \d+ bytes/,
    ],
    [
      'an index that names a file elsewhere',
      () => {
        diffusers();
        rmSync(join(folder, 'unet'), { recursive: true });
        json('unet/model.safetensors.index.json', { weight_map: { a: '/etc/model.safetensors' } });
      },
      /cannot be read: .*no safetensors file beside it/,
    ],
    [
      'a model of another kind',
      () => json('model_index.json', { _class_name: 'FluxPipeline' }),
      /describes a FluxPipeline/,
    ],
    [
      'a configuration of another architecture',
      () => {
        diffusers();
        json('unet/config.json', { act_fn: 'gelu' });
      },
      /describes another model: "act_fn" is "gelu"/,
    ],
    [
      'a scaling factor of 0',
      () => {
        diffusers();
        json('vae/config.json', { scaling_factor: 0 });
      },
      /has a scaling_factor that is no number, infinite or 0/,
    ],
  ])('refuses a folder with %s', async (_, make, sentence) => {
    make();
    const read = readModelParts(folder);
    await expect(read).rejects.toThrow(ModelFolderError);
    await expect(read).rejects.toThrow(sentence);
  });

  it('tells all that is wrong at once', async () => {
    diffusers();
    json('darkroom.json', { steps: 0 });
    json('vae/config.json', { scaling_factor: 'x' });
    const error: unknown = await readModelParts(folder).catch((thrown: unknown) => thrown);
    expect((error as Error).message.split('\n')).toEqual([
      expect.stringContaining('vae/config.json has a scaling_factor'),
      expect.stringContaining('darkroom.json has steps'),
    ]);
  });
});
