import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readModelFolder, VaeEncoder } from '@app/diffusion';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';
import { largestDifference } from '../support/golden';

const folder = mkdtempSync(join(tmpdir(), 'pictures-in-'));
afterAll(() => rmSync(folder, { recursive: true }));

it.each(['sd15', 'sdxl', 'inpainting'])(
  'The encoder of %s gives the distribution that diffusers does',
  async (family) => {
    const root = mkdtempSync(join(folder, `${family}-`));
    await unpackFamily(family, root);
    const expected = await readSafetensors(join(root, 'expected.safetensors'));
    const values = (name: string) => readValues(expected.get(`vae.${name}`)!);
    const [rows, , height, width] = expected.get('vae.picture')!.shape;
    const encoder = await VaeEncoder.load(await readModelFolder(join(root, 'model')), cpu);
    try {
      const first = (all: Float32Array): Float32Array => all.subarray(0, all.length / rows);
      const { mean, deviation } = await encoder.encodePlanes(first(await values('picture')), width, height);
      const factor = family === 'sdxl' ? 0.13025 : 0.18215;
      const rightMean = first(await values('mean')).map((value) => value * factor);
      expect(largestDifference(mean, rightMean)).toBeLessThan(1e-5);
      const right = first(await values('logvar')).map((logarithm) => Math.exp(logarithm / 2) * factor);
      expect(largestDifference(deviation!, right)).toBeLessThan(1e-5);
    } finally {
      await encoder.release();
    }
  },
);
