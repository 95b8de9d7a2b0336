import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  loadAdapter,
  type MergedUse,
  readAdapter,
  readModelFolder,
  Pipeline,
  writeMerged,
} from '@app/diffusion';
import { multiply, swapAxes } from '../../libs/diffusion/src/adapters/matrices';
import { readValues, tensorsBelow } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { lastOpened, requestOf, unpackFamily, unpackFolder } from '../support/families';

interface Case {
  name: string;
  prompt: string;
  negative_prompt: string | null;
  seed: number;
  steps: number;
  cfg: number;
  height: number;
  width: number;
  adapters: { file: string; strength?: number; token?: string }[];
}

const folder = mkdtempSync(join(tmpdir(), 'adapters-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Latents of a case. @param adapters folder of the files that it names */
async function draw(model: string, adapters: string, one: Case): Promise<Float32Array> {
  const { tensors } = await readModelFolder(model);
  const uses: AdapterUse[] = [];
  const merged: MergedUse[] = [];
  for (const { file, strength: scale = 1, token } of one.adapters) {
    const fitted = fitAdapter(await readAdapter(join(adapters, file)), tensors);
    uses.push({ adapter: await loadAdapter(fitted), scale, token });
    if (fitted.merged.size > 0) merged.push({ adapter: fitted, scale });
  }
  const pipeline = await (merged.length > 0 ? loadMerged(model, merged) : loadPlain(model));
  const { latents } = await pipeline.generate({ ...requestOf(one), adapters: uses });
  if (merged.length > 0) await pipeline.release();
  return latents[0];
}

async function loadMerged(model: string, merged: MergedUse[]): Promise<Pipeline> {
  const changedWeights = join(mkdtempSync(join(folder, 'merged-')), 'it.safetensors');
  await writeMerged(merged, changedWeights);
  return Pipeline.load(model, { ...cpu, changedWeights });
}

const kept = lastOpened();

async function loadPlain(model: string): Promise<Pipeline> {
  const { pipeline } = await kept(model, async () => ({ pipeline: await Pipeline.load(model, cpu) }));
  return pipeline;
}

const difference = (some: Float32Array, others: Float32Array): number =>
  some.reduce((most, value, i) => Math.max(most, Math.abs(value - others[i])), 0);

const cases = ['sd15', 'sd21', 'sd21-base', 'sdxl'].flatMap((family) => {
  const json = readFileSync(join('test/golden/families', family, 'family.json'), 'utf8');
  const all = (JSON.parse(json) as { cases: Case[] }).cases;
  return all.filter(({ adapters }) => adapters.length > 0).map((one) => [family, one.name, one] as const);
});

it.each(cases)('A model of %s draws what diffusers does with its %s', async (family, name, one) => {
  const root = join(folder, family);
  if (!existsSync(root)) await unpackFamily(family, root);
  const expected = await readSafetensors(join(root, 'expected.safetensors'));
  const latents = await draw(join(root, 'model'), join(root, 'adapters'), one);
  expect(difference(latents, await readValues(expected.get(`${name}.latents`)!))).toBeLessThan(1e-4);
});

describe('An adapter of another tool', () => {
  const own = join(folder, 'own');
  beforeAll(() => unpackFolder('test/golden/adapters', own));

  const request = { prompt: 'a red circle', negative_prompt: null, seed: 7, steps: 4, cfg: 7.5, height: 64, width: 64 };
  it.each(['onetrainer-comfy', 'alpha-int64', 'loha', 'lokr', 'peft-te5'])('is drawn with: %s', async (name) => {
    const expected = await readSafetensors(join(own, name, 'expected.safetensors'));
    const adapters = [{ file: join(name, 'weights.safetensors') }];
    const latents = await draw(join(own, 'base'), own, { ...request, name, adapters });
    expect(difference(latents, await readValues(expected.get('latents')!))).toBeLessThan(1e-4);
  });

  it('adds its changes to those of another one', async () => {
    const { tensors } = await readModelFolder(join(own, 'base'));
    const fitted = async (name: string) =>
      fitAdapter(await readAdapter(join(own, name, 'weights.safetensors')), tensors);
    const uses = [
      { adapter: await fitted('loha'), scale: 1 },
      { adapter: await fitted('lokr'), scale: 0.5 },
    ];
    const file = join(folder, 'both.safetensors');
    await writeMerged(uses, file);
    const written = await readSafetensors(file);
    let shared = 0;
    for (const [part, ofPart] of tensors)
      for (const [name, tensor] of tensorsBelow(written, `${part}.`)) {
        const stored = ofPart.get(name)!;
        const values = await readValues(stored);
        const base = stored.isTransposed ? swapAxes(values, stored.shape[1], stored.shape[0]) : values;
        const changed = await Promise.all(
          uses.flatMap(({ adapter, scale }) => adapter.merged.get(part)?.get(name)?.read(scale) ?? []),
        );
        if (changed.length > 1) shared++;
        const expected = base.map((value, i) => changed.reduce((sum, one) => sum + one[i] - value, value));
        expect([name, difference(await readValues(tensor), expected) < 1e-6]).toEqual([name, true]);
      }
    expect(shared).toBeGreaterThan(0);
  });

  it('changes weights as LyCORIS does', async () => {
    const read = (name: string) => join(own, 'lycoris', `${name}.safetensors`);
    const [base, expected] = [await readSafetensors(read('base')), await readSafetensors(read('expected'))];
    const { layers, merged } = fitAdapter(await readAdapter(read('weights')), new Map([['unet', base]]));
    for (const [name, tensor] of expected) {
      const low = layers.get('unet')!.get(name.replace(/\.weight$/, ''));
      const { a, b } = low ? await low.read() : {};
      const delta = a && b && (await multiply(b, a, low!.rank));
      const values = delta
        ? (await readValues(base.get(name)!)).map((value, i) => value + delta[i])
        : await merged.get('unet')!.get(name)!.read(1);
      expect([name, difference(values, await readValues(tensor)) < 1e-6]).toEqual([name, true]);
    }
    const forms = new Set(
      [...layers.get('unet')!.keys()].map((path) => path.slice('mid_block.'.length, path.lastIndexOf('_'))),
    );
    expect([...forms]).toEqual(['locon', 'locon_tucker']);
  });
});
