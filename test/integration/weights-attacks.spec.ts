import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectWeights } from '@app/diffusion';
import { FileSource } from '../../libs/diffusion/src/tensor/byte-source';

const base = join(process.cwd(), 'models', 'shapes');
const layer = 'unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q';
const conv = 'lora_unet_down_blocks_0_resnets_0_conv1';

type Tensors = Record<string, number[]>;

/** A file of F16 tensors with all-zero values that take no space on the disk. */
async function fileOf(path: string, tensors: Tensors, metadata?: Record<string, string>): Promise<void> {
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  let offset = 0;
  for (const [name, shape] of Object.entries(tensors)) {
    const bytes = 2 * shape.reduce((product, length) => product * length, 1);
    header[name] = { dtype: 'F16', shape, data_offsets: [offset, offset + bytes] };
    offset += bytes;
  }
  await writeRaw(path, JSON.stringify(header), offset);
}

async function writeRaw(path: string, header: string, dataBytes: number): Promise<void> {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(header)));
  await writeFile(path, Buffer.concat([length, Buffer.from(header), Buffer.alloc(dataBytes)]));
}

const linear = (rank: number, out = 128, input = 128): Tensors => ({
  [`${layer}.lora_A.weight`]: [rank, input],
  [`${layer}.lora_B.weight`]: [out, rank],
});

describe('weights that are made to be expensive', () => {
  let folder: string;
  let path: string;
  /** Bytes read from the file itself; the base's graph is read too. */
  let read: number;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-attack-'));
    path = join(folder, 'weights.safetensors');
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function inspect(): Promise<unknown> {
    const { size } = await stat(path);
    const reads = jest.spyOn(FileSource.prototype, 'bytes');
    try {
      return await inspectWeights(path, base).catch((error: unknown) => error);
    } finally {
      const { calls, contexts } = reads.mock;
      read = calls.reduce(
        (sum, [begin, end], i) => sum + ((contexts[i] as FileSource).size === size ? end - begin : 0),
        0,
      );
      reads.mockRestore();
    }
  }

  it.each<[string, Tensors, string, RegExp]>([
    [
      'a middle factor of a kernel that the base does not have',
      {
        [`${conv}.lora_down.weight`]: [300, 14_700, 1, 1],
        [`${conv}.lora_mid.weight`]: [300, 300, 7, 7],
        [`${conv}.lora_up.weight`]: [300, 300, 1, 1],
      },
      'WeightsDoNotFitModel',
      /shape \[300, 14700, 7, 7\]/,
    ],
    ['a rank above the weight', linear(20_000), 'WeightsTooComplex', /the rank 20000; its weight takes at most 1024/],
    ['another width', linear(8, 320, 320), 'WeightsDoNotFitModel', /shape \[320, 320\]/],
    ['an embedding of a million vectors', { emb_params: [100_000, 128] }, 'WeightsDoNotFitModel', /room for 75/],
    ['an embedding of another width', { emb_params: [1, 1_000_000] }, 'WeightsDoNotFitModel', /\[1, 1000000\]/],
    ['an alpha of a million numbers', { ...linear(4), [`${layer}.alpha`]: [1_000_000] }, 'WeightsMalformed', /alpha/],
    [
      'many pairs for one layer',
      Object.fromEntries(
        Array.from({ length: 2 ** 7 }, (_, i) => {
          // Each separator may be written in two ways.
          const [first, ...parts] = layer.split('.');
          const name = parts.reduce((text, part, n) => `${text}${n > 0 && (i >> n) & 1 ? '_' : '.'}${part}`, first);
          return [`${name}.lora_A.weight`, [1, 128]];
        }),
      ),
      'WeightsMalformed',
      /are for the same layer/,
    ],
  ])('rejects %s without reading a number', async (_, tensors, code, sentence) => {
    await fileOf(path, tensors);
    expect(await inspect()).toMatchObject({
      name: 'WeightsError',
      code,
      message: expect.stringMatching(sentence) as string,
    });
    const { size } = await stat(path);
    expect(read).toBeLessThan(Math.min(size, 2 ** 20));
  });

  it('rejects a header that is longer than any valid one before reading it', async () => {
    await writeRaw(path, ' '.repeat(20_000_000), 0);
    expect(await inspect()).toMatchObject({ code: 'WeightsMalformed' });
    expect(read).toBe(8);
  });

  it('reads the numbers of matching tensors once, including a middle factor', async () => {
    await fileOf(path, linear(1024));
    expect(await inspect()).toMatchObject({ kind: 'lora' });
    const { size } = await stat(path);
    expect(read).toBe(size);
  });
});
