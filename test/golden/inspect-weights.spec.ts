import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectWeights } from '@app/diffusion';
import { encodeOnnx } from '../support/onnx';
import { encodeSafetensors } from '../support/safetensors';

const shapes = join(__dirname, '../../models/shapes');
const tiny = (name: string) => join(__dirname, 'models/tiny', name);
const robot = (format: string) => join(__dirname, 'models/lora', `zwx-robot-${format}.safetensors`);

let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-lora-'));
});
afterEach(() => rm(scratch, { recursive: true }));

describe('inspectWeights', () => {
  it("accepts a LoRA in kohya's keys for its own base", () =>
    expect(inspectWeights(robot('kohya'), shapes)).resolves.toEqual({ kind: 'lora' }));

  it('says of a LoRA without alpha that its strength was assumed', () =>
    expect(inspectWeights(robot('diffusers'), shapes)).resolves.toEqual({
      kind: 'lora',
      note: expect.stringMatching(/does not say/) as string,
    }));

  it('counts the vectors of a textual inversion', async () => {
    const path = join(scratch, 'embedding.safetensors');
    await writeFile(
      path,
      encodeSafetensors({ emb_params: { shape: [2, 128], values: new Array<number>(256).fill(0) } }),
    );
    await expect(inspectWeights(path, shapes)).resolves.toEqual({ kind: 'textual_inversion', tokens: 2 });
  });

  it.each(['sd15-diffusers', 'sd21-optimum'])('rejects it for %s, naming key and shapes', async (name) => {
    await expect(inspectWeights(robot('diffusers'), tiny(name))).rejects.toMatchObject({
      code: 'WeightsDoNotFitModel',
      message: expect.stringMatching(
        /^The key "\S+" is for a weight of shape \[.*\]; the base model's is \[.*\]\.$/,
      ) as string,
    });
  });

  it('rejects a layer that the base does not have', async () => {
    const path = join(scratch, 'lora.safetensors');
    const key = 'unet.down_blocks.9.attentions.0.proj_in';
    const factor = { shape: [1, 1], values: [1] };
    await writeFile(path, encodeSafetensors({ [`${key}.lora_A.weight`]: factor, [`${key}.lora_B.weight`]: factor }));
    await expect(inspectWeights(path, shapes)).rejects.toMatchObject({
      code: 'WeightsDoNotFitModel',
      message: `The key "${key}.lora_A.weight" is for a layer that the base model's unet does not have.`,
    });
  });

  it('rejects a base whose layers have no names', async () => {
    const nodes = [{ op: 'MatMul', name: 'MatMul_17', inputs: ['x', '3071'], outputs: ['y'] }];
    const weight = { name: '3071', dims: [2, 2], dataType: 1, raw: new Uint8Array(16) };
    for (const part of ['unet', 'text_encoder']) {
      await mkdir(join(scratch, part));
      await writeFile(join(scratch, part, 'model.onnx'), encodeOnnx({ nodes, initializers: [weight] }));
    }
    await expect(inspectWeights(robot('kohya'), scratch)).rejects.toThrow(/exported without its layers' names/);
  });

  it('rejects a picture', async () => {
    await expect(inspectWeights(join(__dirname, 'data/lora/0.png'), shapes)).rejects.toMatchObject({
      name: 'WeightsError',
      code: 'WeightsMalformed',
    });
  });
});
