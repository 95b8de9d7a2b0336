import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  loadAdapter,
  Pipeline,
  readAdapter,
  readModelFolder,
  writeMerged,
} from '@app/diffusion';
import { cutRows } from '../../libs/diffusion/src/adapters/matrices';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { diffusersLayer, type NamedFamily } from '../../libs/diffusion/src/weights/original-transformer-names';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { adapterRequest, bytesOf, latentsOf, layersOfBlocks, transformerFile } from '../support/adapter-goldens';
import { unpackFolder, unpackTransformerModel } from '../support/families';
import { largestDifference } from '../support/golden';
import { quantiseLayers } from '../support/int8-layers';
import { writeLoras } from '../support/loras';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';

const folder = mkdtempSync(join(tmpdir(), 'transformer-dialects-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The pair of a layer. */
interface Pair {
  layer: string;
  down: TensorToWrite;
  up: TensorToWrite;
}

/** Of scripts/goldens/transformer_dialects.py: half of the rank. */
const alpha = 1;

async function readPairs(file: string): Promise<Pair[]> {
  const tensors = await readSafetensors(file);
  const read = async (key: string): Promise<TensorToWrite> => {
    const tensor = tensors.get(key)!;
    return { shape: [...tensor.shape], values: await readValues(tensor) };
  };
  const layers = [...tensors.keys()].flatMap((key) => /^(.*)\.alpha$/.exec(key)?.[1] ?? []);
  return Promise.all(
    layers.map(async (layer) => ({
      layer,
      down: await read(`${layer}.lora_down.weight`),
      up: await read(`${layer}.lora_up.weight`),
    })),
  );
}

/** The same for layers of diffusers. */
function splitPairs(family: NamedFamily | undefined, pairs: readonly Pair[]): Pair[] {
  return pairs.flatMap(({ layer, down, up }) => {
    const { paths, isSwapped } = family ? diffusersLayer(family, layer) : { paths: [layer], isSwapped: false };
    return paths.map((path, index) => {
      const values = cutRows(Float32Array.from(up.values), { index, count: paths.length, isSwapped });
      return { layer: path, down, up: { shape: [up.shape[0] / paths.length, up.shape[1]], values } };
    });
  });
}

const underscored = (layer: string): string => layer.replaceAll('.', '_');

interface Form {
  prefix: string;
  factors: readonly [down: string, up: string];
  nameOf?: (layer: string) => string;
  /** Without it each layer has an alpha of its own. */
  metadata?: Record<string, string>;
}

const ofPeft = ['lora_A.weight', 'lora_B.weight'] as const;
const ofKohya = ['lora_down.weight', 'lora_up.weight'] as const;

function write({ prefix, factors, nameOf = (layer) => layer, metadata }: Form, pairs: readonly Pair[]) {
  const tensors: Record<string, TensorToWrite> = {};
  for (const { layer, down, up } of pairs) {
    const name = prefix + nameOf(layer);
    tensors[`${name}.${factors[0]}`] = down;
    tensors[`${name}.${factors[1]}`] = up;
    if (!metadata) tensors[`${name}.alpha`] = { shape: [], values: [alpha] };
  }
  return { tensors, ...(metadata && { metadata }) };
}

const cases: { model: string; family?: NamedFamily }[] = [
  { model: 'flux2-klein', family: 'flux2' },
  { model: 'z-image', family: 'z-image' },
  // Its names are the same in diffusers.
  { model: 'ernie-image' },
];

describe.each(cases)('A LoRA of $model in the names of the original', ({ model, family }) => {
  const at = (...names: string[]): string => join(folder, model, ...names);
  const read = async (file: string, precision = 'float32') =>
    fitAdapter(await readAdapter(file), (await readModelFolder(at(precision))).tensors);
  const use = async (file: string, scale = 1): Promise<AdapterUse> => ({
    adapter: await loadAdapter(await read(file)),
    scale,
  });
  const recorded = at('recorded', 'lora.safetensors');
  const expected = async (name: string): Promise<Float32Array> =>
    readValues((await readSafetensors(at('recorded', 'expected.safetensors'))).get(name)!);
  const dialects: string[] = [];
  let other: string;

  beforeAll(async () => {
    await unpackFolder(join('test/golden/adapters', `${model}-original`), at('recorded'));
    await unpackTransformerModel(model, at('float32'));
    await cp(at('float32'), at('int8'), { recursive: true });
    await quantiseLayers(at('int8', transformerFile), (layer) => layersOfBlocks.test(layer));
    [other] = await writeLoras(at('float32'), at(), [2]);

    const original = await readPairs(recorded);
    const split = splitPairs(family, original);
    const forms = {
      comfy: write({ prefix: 'diffusion_model.', factors: ofPeft }, original),
      kohya: write({ prefix: 'lora_unet_', nameOf: underscored, factors: ofKohya }, original),
      peft: write(
        {
          prefix: 'base_model.model.',
          factors: ['lora_A.default.weight', 'lora_B.default.weight'],
          metadata: { adapter_config: `{"r": 2, "lora_alpha": ${alpha}}` },
        },
        original,
      ),
      dotted: write({ prefix: 'lora_unet_', factors: ['lora.down.weight', 'lora.up.weight'] }, original),
      diffusers: write(
        {
          prefix: 'transformer.',
          factors: ofPeft,
          metadata: { lora_adapter_metadata: `{"transformer.r": 2, "transformer.lora_alpha": ${alpha}}` },
        },
        split,
      ),
      expanded: write(
        {
          prefix: 'diffusion_model.',
          nameOf: (layer) => layer.replace(/^transformer_blocks/, 'sformer_blocks'),
          factors: ofKohya,
        },
        split,
      ),
      musubi: write({ prefix: 'lora_unet_', nameOf: underscored, factors: ofKohya }, split),
      twice: write({ prefix: '', factors: ['lora.down.weight', 'lora.up.weight'] }, [
        ...original.filter(({ layer }) => layer.endsWith('qkv') || layer.endsWith('.out')),
        ...split,
      ]),
    };
    for (const [name, { tensors, ...rest }] of Object.entries(forms)) {
      writeFileSync(at(name), encodeSafetensors(tensors, 'metadata' in rest ? rest.metadata : undefined));
      dialects.push(at(name));
    }
  });

  describe.each(['float32', 'int8'])('in %s', (precision) => {
    let pipeline: Pipeline;
    beforeAll(async () => {
      pipeline = await Pipeline.load(at(precision), { ...cpu, intraOpNumThreads: 2 });
    });
    afterAll(() => pipeline.release());

    it('draws the same in every dialect, beside another LoRA too', async () => {
      const second = await use(other, 0.5);
      const drawn = await latentsOf(pipeline, { adapters: [await use(recorded)] });
      const both = await latentsOf(pipeline, { adapters: [await use(recorded), second] });
      if (precision === 'float32') expect(largestDifference(drawn, await expected('lora'))).toBeLessThan(1e-4);
      expect(largestDifference(drawn, both)).toBeGreaterThan(1e-3);
      for (const file of dialects) {
        const one = await use(file);
        expect(bytesOf(await latentsOf(pipeline, { adapters: [one] })).equals(bytesOf(drawn))).toBe(true);
        expect(bytesOf(await latentsOf(pipeline, { adapters: [one, second] })).equals(bytesOf(both))).toBe(true);
      }
    });

    it('gives a picture the bits of alone beside those of other LoRAs', async () => {
      const first = await use(recorded);
      const uses = [[first], [await use(other)], [], [{ ...first, scale: 0.5 }]];
      const prepared = () =>
        Promise.all(
          uses.map(async (adapters, i) => (await pipeline.prepare({ ...adapterRequest, adapters, seeds: [i] }))[0]),
        );
      const [alone, together] = [await prepared(), await prepared()];
      for (const one of alone) while (!one.done) await pipeline.step([one]);
      while (!together[0].done) await pipeline.step(together);
      for (const [i, { latents }] of together.entries())
        expect(bytesOf(latents).equals(bytesOf(alone[i].latents))).toBe(true);
    });

    it('may be a LoKr, a LoHa or a DoRA of layers that are cut in three', async () => {
      const changedWeights = at(`${precision}-changed`);
      await writeMerged(
        [{ adapter: await read(at('recorded', 'kin.safetensors'), precision), scale: 1 }],
        changedWeights,
      );
      const merged = await Pipeline.load(at(precision), { ...cpu, changedWeights });
      const difference = largestDifference(await latentsOf(merged), await expected('kin'));
      await merged.release();
      // Layers in int8 have other values from the start.
      expect(difference).toBeLessThan(precision === 'float32' ? 1e-4 : 0.2);
    });
  });
});
