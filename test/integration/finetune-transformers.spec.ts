import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isTerminated } from '@app/domain';
import type { GenerationDto } from '@app/domain/http';
import { JsonLogger } from '@app/observability';
import sharp from 'sharp';
import { createInference } from '../../apps/inference/src/create-inference';
import { startTestApi } from '../support/api';
import { type FinetuneJson, makeFinetune, type ProblemJson } from '../support/factories';
import { unpackFolder, unpackTransformerModel } from '../support/families';
import { threadFile } from '../support/inference';
import { ofSuite } from '../support/of-suite';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';
import { until } from '../support/until';

const headers = { 'content-type': 'application/octet-stream' };

describe('A Fine-Tune of a model with a transformer', () => {
  const place = ofSuite(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-transformers-'));
    await unpackTransformerModel('flux2-klein', join(folder, 'models', 'klein'));
    await writeFile(join(folder, 'models', 'klein', 'darkroom.json'), '{"size": 256}');
    await unpackFolder('test/golden/adapters/flux2-klein', folder);
    await unpackFolder('test/golden/adapters/flux2-klein-original', join(folder, 'original'));
    return { folder, close: () => rm(folder, { recursive: true }) };
  });
  const api = ofSuite(() =>
    startTestApi({
      MODELS_DIR: join(place.folder, 'models'),
      MODEL_FALLBACK: 'off',
      DEVICE: 'cpu',
      INFERENCE_THREADS: '1',
    }),
  );
  const key = ofSuite(() => api.createKey());
  ofSuite(async () => {
    const { config } = api;
    const logger = new JsonLogger('inference', 'silent');
    const worker = await createInference({ config, databaseUrl: config.databaseUrl ?? '', logger, threadFile });
    return { close: () => worker.close() };
  });

  const upload = async (file: string) => {
    const { id } = await makeFinetune(api, key, { model: 'klein' });
    const raw = await readFile(file);
    return api.request<FinetuneJson & ProblemJson>('PUT', `/v1/finetunes/${id}/weights`, { key, raw, headers });
  };
  /** Pixels: the file also has what they were drawn with. */
  const draw = async (finetunes: { id: string; scale: number }[]): Promise<Buffer> => {
    const body = { prompt: 'a red circle', model: 'klein', seed: 7, output_format: 'png', finetunes };
    const { body: made, text } = await api.request<GenerationDto>('POST', '/v1/sd/text-to-image', { key, body });
    const { images } = await until(async () => {
      const { body } = await api.request<GenerationDto>('GET', `/v1/sd/text-to-image/${made.id}`, { key });
      return isTerminated(body.status) && body;
    }, `it has been drawn: ${text}`);
    const reply = await fetch(api.baseUrl + new URL(images[0]).pathname);
    return sharp(await reply.arrayBuffer())
      .raw()
      .toBuffer();
  };

  it('has a LoRA as diffusers writes it, which changes what is drawn', async () => {
    const { status, body } = await upload(join(place.folder, 'weights.safetensors'));
    expect([status, body.status, body.weights?.kind, body.note]).toEqual([200, 'ready', 'lora', null]);
    const [plain, tuned, unchanged] = [
      await draw([]),
      await draw([{ id: body.id, scale: 1 }]),
      await draw([{ id: body.id, scale: 0 }]),
    ];
    expect([tuned.equals(plain), unchanged.equals(plain)]).toEqual([false, true]);
  });

  it('has what changes fused layers of the original, which is drawn beside a LoRA', async () => {
    const ids: string[] = [];
    for (const name of ['lora', 'kin']) {
      const { status, body } = await upload(join(place.folder, 'original', `${name}.safetensors`));
      expect([status, body.status, body.note]).toEqual([200, 'ready', null]);
      ids.push(body.id);
    }
    const drawn: string[] = [];
    for (const scales of [
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
    ])
      drawn.push((await draw(ids.map((id, i) => ({ id, scale: scales[i] })))).toString('hex'));
    expect(new Set(drawn).size).toBe(4);
  });

  it('tells which tensors of its file are for no layer', async () => {
    const unknown = 'lora_te_model_layers_0_mlp_up_proj';
    const known = 'lora_unet_double_blocks_0_img_attn_proj';
    const tensors: Record<string, TensorToWrite> = {};
    for (const layer of [known, unknown]) {
      tensors[`${layer}.lora_down.weight`] = { shape: [1, 128], values: new Float32Array(128) };
      tensors[`${layer}.lora_up.weight`] = { shape: [128, 1], values: new Float32Array(128) };
      tensors[`${layer}.alpha`] = { shape: [], values: [1] };
    }
    const file = join(place.folder, 'more');
    await writeFile(file, encodeSafetensors(tensors));
    const { status, body } = await upload(file);
    expect([status, body.weights?.unmatched, body.note]).toEqual([
      200,
      3,
      `Of 6 tensors 3 are left out: they are for layers that the base model does not have, such as that of "${unknown}.lora_down.weight".`,
    ]);
  });

  it('is refused a LoRA of another model, by the name of a layer', async () => {
    const { status, body } = await upload('test/golden/models/lora/zwx-robot-diffusers.safetensors');
    expect([status, body.code]).toEqual([422, 'WeightsDoNotFitModel']);
    expect(body.detail).toMatch(/^The key "unet\.\S+" is for Stable Diffusion, which is another family of models\.$/);
  });
});
