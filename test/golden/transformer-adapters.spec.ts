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
import { countOf, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { adapterRequest, bytesOf, latentsOf, layersOfBlocks, transformerFile } from '../support/adapter-goldens';
import { unpackFolder, unpackTransformerModel } from '../support/families';
import { largestDifference } from '../support/golden';
import { quantiseLayers } from '../support/int8-layers';
import { writeLoras } from '../support/loras';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';

const folder = mkdtempSync(join(tmpdir(), 'transformer-adapters-'));
afterAll(() => rmSync(folder, { recursive: true }));

const wave = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => Math.sin(i + 1) / 8);

describe.each([
  { family: 'flux2-klein', layers: ['transformer_blocks.1.attn.to_q', 'single_transformer_blocks.0.attn.to_out'] },
  { family: 'z-image', layers: ['layers.1.attention.to_q', 'layers.0.feed_forward.w2'] },
])('A LoRA of $family', ({ family, layers }) => {
  const at = (...names: string[]): string => join(folder, family, ...names);
  const recorded = at('recorded', 'weights.safetensors');
  const read = async (file: string, precision = 'float32') =>
    fitAdapter(await readAdapter(file), (await readModelFolder(at(precision))).tensors);
  const use = async (file: string, scale = 1): Promise<AdapterUse> => ({
    adapter: await loadAdapter(await read(file)),
    scale,
  });
  let others: string[];

  beforeAll(async () => {
    await unpackFolder(join('test/golden/adapters', family), at('recorded'));
    await unpackTransformerModel(family, at('float32'));
    await cp(at('float32'), at('int8'), { recursive: true });
    await quantiseLayers(at('int8', transformerFile), (layer) => layersOfBlocks.test(layer));
    others = await writeLoras(at('float32'), at(), [4, 8]);
  });

  it('draws what diffusers does with it, in whichever form it is written', async () => {
    const tensors = await readSafetensors(recorded);
    const written = async (name: string, prefix: string, factors: readonly string[], alpha?: number) => {
      const form: Record<string, TensorToWrite> = {};
      for (const [key, tensor] of tensors) {
        const [, layer, factor] = /^transformer\.(.+)\.lora_([AB])\.weight$/.exec(key)!;
        const { shape } = tensor;
        form[`${prefix}${layer}.${factors[factor === 'A' ? 0 : 1]}`] = {
          shape: [...shape],
          values: await readValues(tensor),
        };
        if (alpha) form[`${prefix}${layer}.alpha`] = { shape: [], values: [alpha] };
      }
      writeFileSync(at(name), encodeSafetensors(form));
      return at(name);
    };
    const ofPeft = ['lora_A.weight', 'lora_B.weight'];
    // Where nothing tells alpha it is taken to be the rank, which is half of it here.
    const uses = [
      await use(recorded),
      await use(await written('bare', '', ofPeft), 2),
      await use(await written('peft', 'base_model.model.', ofPeft), 2),
      await use(await written('older', 'transformer.', ['lora.down.weight', 'lora.up.weight'], 8)),
    ];
    const pipeline = await Pipeline.load(at('float32'), cpu);
    const drawn: Float32Array[] = [];
    for (const one of uses) drawn.push(await latentsOf(pipeline, { adapters: [one] }));
    await pipeline.release();
    const expected = (await readSafetensors(at('recorded', 'expected.safetensors'))).get('latents')!;
    expect(largestDifference(drawn[0], await readValues(expected))).toBeLessThan(1e-4);
    for (const one of drawn) expect(bytesOf(one).equals(bytesOf(drawn[0]))).toBe(true);
  });

  describe.each(['float32', 'int8'])('in %s', (precision) => {
    let pipeline: Pipeline;
    beforeAll(async () => {
      pipeline = await Pipeline.load(at(precision), { ...cpu, intraOpNumThreads: 2 });
    });
    afterAll(() => pipeline.release());

    it('leaves nothing of itself in the model', async () => {
      const [first, second] = [await use(recorded), await use(others[1], 0.5)];
      const drawn: Buffer[] = [];
      for (const adapters of [[], [first], [], [first, second], [], [second], [first]])
        drawn.push(bytesOf(await latentsOf(pipeline, { adapters })));
      const [base, one, again, both, last, other, oneAgain] = drawn;
      expect([again.equals(base), last.equals(base), oneAgain.equals(one)]).toEqual([true, true, true]);
      expect(new Set([base, one, both, other].map((each) => each.toString('hex'))).size).toBe(4);
    });

    it('gives a picture the bits of alone beside those of other LoRAs', async () => {
      const first = await use(recorded);
      const uses = [[first], [], [await use(others[0])], [{ ...first, scale: 0.5 }]];
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

    it('that is not of low rank makes layers float that it changes', async () => {
      const model = await readSafetensors(at(precision, transformerFile));
      const [lokr, full] = layers.map((layer) => model.get(`${layer}.weight`)!);
      const [out, into] = lokr.shape.map((length) => length / 2);
      const [w1, w2, diff] = [wave(4), wave(out * into), wave(countOf(full.shape))];
      const adapter = {
        [`transformer.${layers[0]}.lokr_w1`]: { shape: [2, 2], values: w1 },
        [`transformer.${layers[0]}.lokr_w2`]: { shape: [out, into], values: w2 },
        [`transformer.${layers[1]}.diff`]: { shape: [...full.shape], values: diff },
      };
      writeFileSync(at('lokr'), encodeSafetensors(adapter));
      const changedWeights = at(`${precision}-changed`);
      await writeMerged([{ adapter: await read(at('lokr'), precision), scale: 1 }], changedWeights);
      const merged = await Pipeline.load(at(precision), { ...cpu, changedWeights });
      const drawn = await latentsOf(merged);
      await merged.release();

      // The same by hand, in a model of its own.
      const product = (await readValues(lokr)).map((value, i) => {
        const [row, column] = [Math.floor(i / (2 * into)), i % (2 * into)];
        const factor = w1[2 * Math.floor(row / out) + Math.floor(column / into)];
        return value + Math.fround(factor * w2[(row % out) * into + (column % into)]);
      });
      const changed = new Map([
        [`${layers[0]}.weight`, product],
        [`${layers[1]}.weight`, (await readValues(full)).map((value, i) => value + diff[i])],
      ]);
      await cp(at('float32'), at('by-hand'), { recursive: true });
      await quantiseLayers(
        at('by-hand', transformerFile),
        (layer) => precision === 'int8' && layersOfBlocks.test(layer),
        changed,
      );
      const byHand = await Pipeline.load(at('by-hand'), cpu);
      const expected = await latentsOf(byHand);
      await byHand.release();
      expect(bytesOf(drawn).equals(bytesOf(expected))).toBe(true);
      expect(largestDifference(drawn, await latentsOf(pipeline))).toBeGreaterThan(1e-2);
    });
  });
});
