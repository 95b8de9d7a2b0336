import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { weightsKind } from './adapter-file';

describe(weightsKind.name, () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-weights-'));
  const file = join(folder, 'weights.safetensors');
  afterAll(() => rmSync(folder, { recursive: true }));

  /** A safetensors file of tensors of one number. */
  const write = (...keys: string[]): void => {
    const tensors = keys.map((key, i) => [key, { dtype: 'F32', shape: [1], data_offsets: [i * 4, i * 4 + 4] }]);
    const header = Buffer.from(JSON.stringify(Object.fromEntries(tensors)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeFileSync(file, Buffer.concat([length, header, Buffer.alloc(4 * keys.length)]));
  };

  it.each([
    ['lora', 'unet.down_blocks.0.attentions.0.proj_in.lora_A.weight'],
    ['lora', 'lora_unet_down_blocks_0_attentions_0_proj_in.alpha'],
    // Of a relative, and of another family of models.
    ['lora', 'lora_unet_mid_block_attentions_0_proj_in.hada_w1_a'],
    ['lora', 'transformer.blocks.0.lora_B.weight'],
    ['textual_inversion', '<cat>'],
    [undefined, 'model.diffusion_model.input_blocks.0.0.weight'],
    [undefined, 'conv_in.bias'],
  ])('is %s for a file with %s', async (kind, key) => {
    if (kind === 'textual_inversion') write(key);
    else write('model_ema.decay', key);
    expect(await weightsKind(file)).toBe(kind);
  });

  it('is undefined for a file that is no safetensors', async () => {
    writeFileSync(file, 'a checkpoint');
    expect(await weightsKind(file)).toBeUndefined();
  });
});
