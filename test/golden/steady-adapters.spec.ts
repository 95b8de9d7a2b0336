import { InferenceSession, Tensor } from 'onnxruntime-node';
import { encodeGraph } from '../../libs/diffusion/src/graph/graph';
import { conv, linear } from '../../libs/diffusion/src/graph/layers';
import { Module } from '../../libs/diffusion/src/graph/module';
import { spinning } from '../../libs/diffusion/src/sessions/device';
import { randomFrom } from '../../bench/section';

const most = 4;
/** Rows of calls: the more there are, the fewer threads has each. */
const counts = [2, most];

interface Case {
  kind: 'linear' | 'conv';
  into: number;
  /** Tokens or pixels of a row. */
  positions: number;
  rank: number;
  size?: number;
}

/** Cases of which rows beside each other had other bits than alone, and some whose products are small. */
const cases: Case[] = [
  { kind: 'linear', into: 160, positions: 16, rank: 80 },
  { kind: 'linear', into: 640, positions: 16, rank: 48 },
  { kind: 'linear', into: 768, positions: 77, rank: 112 },
  { kind: 'linear', into: 320, positions: 64, rank: 4 },
  { kind: 'conv', into: 320, positions: 64, rank: 4, size: 3 },
  { kind: 'conv', into: 320, positions: 1024, rank: 64, size: 1 },
];

describe.each([2, 16])('adapters of rows on %d threads', (threads) => {
  it.each(cases)(
    'give each row the bits that it has alone: $kind $into, $positions positions, rank $rank',
    async (one) => {
      const { kind, into, positions, rank, size = 1 } = one;
      const random = randomFrom(1);
      const values = (count: number): Float32Array => Float32Array.from({ length: count }, () => random() - 0.5);
      const shape = kind === 'linear' ? [into, into] : [into, into, size, size];
      const bytes = Buffer.from(values(into * into * size * size).buffer);
      const edge = Math.sqrt(positions);
      const ofRow = kind === 'linear' ? [positions, into] : [into, edge, edge];
      const weight = { type: 'F32', shape, bytes } as never;
      const m = Module.of({ tensors: new Map([['layer.weight', weight]]), isAdapted: () => true, isSteady: true });
      const x = m.input('x', ['rows', ...ofRow]);
      m.output('y', kind === 'linear' ? linear(m, x, 'layer') : conv(m, x, 'layer'), ['rows', ...ofRow]);
      const { graph } = m.finish();
      graph.initializers.set('layer.weight', { type: 'float32', shape, bytes });
      const session = await InferenceSession.create(encodeGraph(graph, new Map()), {
        intraOpNumThreads: threads,
        ...spinning(0),
      });
      const factorShapes = { a: kind === 'linear' ? [rank, into] : [rank, into, size, size], b: [into, rank] };
      const all = { x: values(most * into * positions), a: values(most * into * size * size * rank) };
      const b = values(most * into * rank);
      const parted = (data: Float32Array, from: number, rows: number, own: readonly number[]): Tensor => {
        const length = own.reduce((product, each) => product * each, 1);
        return new Tensor('float32', data.slice(from * length, (from + rows) * length), [rows, ...own]);
      };
      /** @param isShared whether all rows have the first one's factors */
      const run = async (from: number, rows: number, isShared: boolean): Promise<Buffer[]> => {
        const [first, count] = isShared ? [0, 1] : [from, rows];
        const { y } = await session.run({
          x: parted(all.x, from, rows, ofRow),
          'layer.lora_A': parted(all.a, first, count, factorShapes.a),
          'layer.lora_B': parted(b, first, count, factorShapes.b),
        });
        const { buffer } = y.data as Float32Array;
        return Array.from({ length: rows }, (_, row) =>
          Buffer.from(buffer, (row * buffer.byteLength) / rows, buffer.byteLength / rows),
        );
      };
      for (const isShared of [false, true]) {
        const alone: Buffer[] = [];
        for (let row = 0; row < most; row++) alone.push(...(await run(row, 1, isShared)));
        for (const count of counts) {
          const together = await run(0, count, isShared);
          for (const [row, own] of together.entries()) expect(own.equals(alone[row])).toBe(true);
        }
      }
      await session.release();
    },
  );
});
