import type { LayerAdapters } from '../adapters/row-adapters';
import type { GraphSession, ValueFacts } from '../sessions/model-session';
import { float32, type Tensors } from '../sessions/tensor';
import { guidanceEmbedding, Unet } from './unet';
import type { DenoiserRow } from './denoiser';

const [channels, edge, width] = [2, 4, 3];

/** A session that gives each row its sample, and remembers what it was fed. */
function echo(further: readonly ValueFacts[] = []): { session: GraphSession; calls: Tensors[] } {
  const calls: Tensors[] = [];
  const inputs: ValueFacts[] = [
    { name: 'sample', type: 'float32', shape: ['batch', channels, 'height', 'width'] },
    { name: 'timestep', type: 'float32', shape: ['batch'] },
    { name: 'encoder_hidden_states', type: 'float32', shape: ['batch', 'tokens', width] },
    ...further,
  ];
  const run = (feeds: Tensors): Promise<Tensors> => {
    calls.push(feeds);
    return Promise.resolve({ out_sample: feeds.sample });
  };
  const session = { file: 'unet', inputs, outputs: [], spent: { runs: 0, runMs: 0 }, run, release: jest.fn() };
  return { session, calls };
}

const row = (value: number, adapters: LayerAdapters = new Map()): DenoiserRow => ({
  sample: new Float32Array(channels * edge * edge).fill(value),
  timestep: value,
  conditioning: { encoder_hidden_states: float32(new Float32Array(2 * width).fill(value), [2, width]) },
  guidanceScale: 1,
  adapters,
});

const predict = (unet: Unet, rows: DenoiserRow[]) => unet.predict(rows, [channels, edge, edge]);

describe(Unet.name, () => {
  it('gives each row its own prediction', async () => {
    const { session, calls } = echo();
    const predictions = await predict(
      new Unet(session, 'cpu', 8),
      [1, 2, 3].map((value) => row(value)),
    );
    expect(predictions.map((values) => new Set(values))).toEqual([new Set([1]), new Set([2]), new Set([3])]);
    expect(calls[0].encoder_hidden_states.dims).toEqual([3, 2, width]);
    expect([...(calls[0].timestep.data as Float32Array)]).toEqual([1, 2, 3]);
  });

  it.each([
    [1, 1],
    [3, 4],
    [6, 8],
  ])('fills a call of %d rows on a GPU up to %d', async (count, expected) => {
    const { session, calls } = echo();
    const predictions = await predict(
      new Unet(session, 'webgpu', 8),
      Array.from({ length: count }, (_, i) => row(i)),
    );
    expect(calls[0].sample.dims[0]).toBe(expected);
    expect(predictions.map(([value]) => value)).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  it('gives a layer the factors of each row, and zeros to one without', async () => {
    const { session, calls } = echo([
      { name: 'a.b.lora_A', type: 'float32', shape: ['batch', 'rank', 2] },
      { name: 'a.b.lora_B', type: 'float32', shape: ['batch', 3, 'rank'] },
    ]);
    const unet = new Unet(session, 'cpu', 8);
    const adapters = new Map([['a.b', { rank: 1, a: Float32Array.of(1, 2), b: Float32Array.of(3, 4, 5) }]]);
    await predict(unet, [row(1), row(2, adapters)]);
    expect(calls[0]['a.b.lora_A']).toMatchObject({ dims: [2, 1, 2], data: Float32Array.of(0, 0, 1, 2) });
    expect(calls[0]['a.b.lora_B']).toMatchObject({ dims: [2, 3, 1], data: Float32Array.of(0, 0, 0, 3, 4, 5) });
    await predict(unet, [row(1)]);
    expect(calls[1]['a.b.lora_A'].dims).toEqual([1, 0, 2]);
    const other = new Map([['a.b', { rank: 2, a: new Float32Array(4), b: new Float32Array(6) }]]);
    await expect(predict(unet, [row(1, adapters), row(2, other)])).rejects.toThrow('different ranks in a.b');
  });

  it('tells a distilled model the guidance scale', async () => {
    const { session, calls } = echo([{ name: 'timestep_cond', type: 'float32', shape: ['batch', 4] }]);
    const unet = new Unet(session, 'cpu', 8);
    await predict(unet, [{ ...row(1), guidanceScale: 8 }]);
    expect(calls[0].timestep_cond.data).toEqual(guidanceEmbedding(8, 4));
  });
});
