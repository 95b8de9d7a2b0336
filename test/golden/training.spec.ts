import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Tensor } from 'onnxruntime-node';
import { ModelSession, readModelFolder, type Tensors } from '@app/diffusion';
import { AdamW } from '../../libs/diffusion/src/training/adam-w';
import { names, trainingGraph } from '../../libs/diffusion/src/training/training-graph';
import { placeGraph } from '../../libs/diffusion/src/sessions/placed-graph';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';

const folder = mkdtempSync(join(tmpdir(), 'training-'));
afterAll(() => rmSync(folder, { recursive: true }));

const [rank, rate] = [3, 1e-3];

/** The layers that a family's recording trains. */
const cases = [
  ['sd15', 'all'],
  ['sd21', 'attention'],
  ['sdxl', 'attention'],
] as const;

/** What torch was given, and what it gave. */
async function recordingOf(family: string): Promise<Tensors> {
  const file = join(folder, `${family}.safetensors`);
  writeFileSync(file, gunzipSync(readFileSync(join(__dirname, 'data/training', `${family}.safetensors.gz`))));
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

describe.each(cases)('Training of %s, %s layers', (family, layers) => {
  let recorded: Tensors;
  beforeAll(async () => {
    await unpackFamily(family, join(folder, family));
    recorded = await recordingOf(family);
  });

  async function open(form: 'plain' | 'recomputed') {
    const model = await readModelFolder(join(folder, family, 'model'));
    const [batch, , height, width] = recorded.sample.dims;
    const [, tokens] = recorded.encoder_hidden_states.dims;
    const { graph, layers: trained } = trainingGraph(model, { rank, layers, form }, { batch, height, width, tokens });
    const session = await ModelSession.open(placeGraph(graph, model.files.get('unet')!), cpu);
    const inputs = trained.flatMap(({ path }) => [names.a(path), names.b(path)]);
    const factors = inputs.map((name) => Float32Array.from(valuesOf(recorded[name])));
    const run = () =>
      session.run(
        Object.fromEntries(
          graph.inputs.map(({ name, shape }) => {
            const at = inputs.indexOf(name);
            return [name, new Tensor('float32', at < 0 ? valuesOf(recorded[name]) : factors[at], shape as number[])];
          }),
        ),
      );
    return { session, inputs, factors, run };
  }

  it.each(['plain', 'recomputed'] as const)('has the gradients of torch, %s', async (form) => {
    const { session, inputs, run } = await open(form);
    const results = await run();
    await session.release();
    const expected = Object.keys(recorded).filter((name) => name.startsWith('gradient/'));
    expect(inputs.map(names.gradientOf).sort()).toEqual(expected.sort());
    expect(differenceOf(valuesOf(results.loss), valuesOf(recorded.loss))).toBeLessThan(1e-5);
    for (const name of expected)
      expect([name, differenceOf(valuesOf(results[name]), valuesOf(recorded[name])) < 1e-4]).toEqual([name, true]);
  });

  it('has the losses of torch after each of ten steps of AdamW', async () => {
    const { session, inputs, factors, run } = await open('plain');
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
});
