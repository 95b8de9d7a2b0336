import { existsSync, linkSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomFrom } from '../../../../bench/section';
import { type StoredTensor, writeStored } from '../../../../test/support/part-files';
import { encodeSafetensors, type TensorToWrite } from '../../../../test/support/safetensors';
import { planConversion, type TargetPrecision } from './convert-weights';
import { readBytes, readValues } from './named-tensor';
import { precisionOf } from './precision';
import { readSafetensors } from './safetensors-file';

const folder = mkdtempSync(join(tmpdir(), 'convert-'));
const [source, file] = ['source', 'converted'].map((name) => join(folder, `${name}.safetensors`));
const part = `${file}.part`;
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => [file, part].forEach((path) => rmSync(path, { force: true })));

const random = randomFrom(1);
const of = (dtype: 'F32' | 'F16', ...shape: number[]): TensorToWrite => {
  const length = shape.reduce((product, each) => product * each, 1);
  return { dtype, shape, values: Array.from({ length }, () => random() - 0.5) };
};
const keptInFloat = /emb|modulation|norm|lm_head|^proj_out\b/;
const layers = ['layers.0.to_q.weight', 'layers.0.to_k.weight', 'layers.1.to_q.weight'];
const model = {
  'layers.0.to_q.bias': of('F32', 8),
  [layers[0]]: of('F16', 8, 256),
  [layers[1]]: { dtype: 'F32', shape: [8, 48], values: Array.from({ length: 384 }, (_, i) => (i < 48 ? 0 : i)) },
  [layers[2]]: of('F32', 24, 64),
  'layers.0.odd.weight': of('F32', 8, 24),
  'x_embedder.weight': of('F16', 8, 64),
  'time_guidance_embed.timestep_embedder.linear_1.weight': of('F16', 8, 64),
  'single_stream_modulation.linear.weight': of('F16', 8, 64),
  'lm_head.weight': of('F16', 8, 64),
  'norm_out.linear.weight': of('F16', 8, 64),
  'proj_out.weight': of('F16', 8, 64),
  'conv.weight': of('F16', 8, 16, 3, 3),
  logit_scale: of('F32'),
} satisfies Record<string, TensorToWrite>;
beforeAll(() => writeFileSync(source, encodeSafetensors(model)));

async function convert(precision: TargetPrecision, onBytes?: (bytes: number) => void, signal?: AbortSignal) {
  const conversion = await planConversion(await readSafetensors(source), precision, keptInFloat);
  await conversion.write(file, { onBytes, signal, syncBytes: 1 });
  expect(readFileSync(file)).toHaveLength(conversion.bytes);
  return readSafetensors(file);
}

describe(planConversion, () => {
  it('brings the linear layers to int8, rotated in blocks that fit, and copies all else', async () => {
    const [before, after] = [await readSafetensors(source), await convert('int8')];
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
    expect(precisionOf(after)).toBe('int8');
    for (const [name, tensor] of before) {
      const written = after.get(name)!;
      expect([name, written.type, written.shape]).toEqual([
        name,
        layers.includes(name) ? 'I8' : tensor.type,
        tensor.shape,
      ]);
      if (!layers.includes(name)) {
        const length = (await readValues(tensor)).length * (tensor.type === 'F16' ? 2 : 4);
        expect(await readBytes(written, 0, length)).toEqual(await readBytes(tensor, 0, length));
        continue;
      }
      const [wanted, values] = [await readValues(tensor), await readValues(written)];
      const scales = await readValues(written.int8!.scale);
      const width = tensor.shape[1];
      // Each of the rotated numbers is off by half a step at most, and the rotation keeps lengths.
      for (const [row, scale] of scales.entries())
        for (let i = row * width; i < (row + 1) * width; i++)
          expect(Math.abs(values[i] - wanted[i])).toBeLessThanOrEqual(scale * Math.sqrt(written.int8!.rotation) + 1e-6);
    }
    expect(layers.map((name) => after.get(name)!.int8!.rotation)).toEqual([256, 16, 64]);
  });

  it('rounds what is float32 to bfloat16', async () => {
    const after = await convert('bfloat16');
    expect(after.get('layers.1.to_q.weight')!.type).toBe('BF16');
    expect(after.get('layers.0.to_q.weight')!.type).toBe('F16');
    expect(after.get('layers.0.to_q.bias')!.type).toBe('F32');
    const values = await readValues(after.get('layers.1.to_q.weight')!);
    for (const [i, value] of values.entries()) {
      const wanted = model['layers.1.to_q.weight'].values[i];
      expect(Math.abs(value - wanted)).toBeLessThanOrEqual(Math.abs(wanted) / 256);
    }
  });

  it.each<[TargetPrecision, string, string]>([
    ['bfloat16', 'BF16', 'BF16'],
    ['float32', 'F32', 'F32'],
    ['int8', 'I8', 'BF16'],
  ])('writes float8 in %s', async (precision, ofLayers, ofOthers) => {
    // 1 and -2 in both types.
    const [e4m3, e5m2] = [Uint8Array.of(0x38, 0xc0), Uint8Array.of(0x3c, 0xc0)];
    const tensors = new Map<string, StoredTensor>([
      ['to_q.weight', { dtype: 'F8_E4M3', shape: [2, 16], bytes: Buffer.alloc(32, e4m3) }],
      ['to_q.bias', { dtype: 'F8_E4M3', shape: [2], bytes: e4m3 }],
      ['emb.weight', { dtype: 'F8_E5M2', shape: [2, 1], bytes: e5m2 }],
    ]);
    const float8 = join(folder, 'float8.safetensors');
    await writeStored(float8, tensors);
    await (await planConversion(await readSafetensors(float8), precision, keptInFloat)).write(file);
    const after = await readSafetensors(file);
    const types = ['to_q.weight', 'to_q.bias', 'emb.weight'].map((name) => after.get(name)!.type);
    expect(types).toEqual([ofLayers, 'F32', ofOthers]);
    for (const name of ['to_q.bias', 'emb.weight']) expect([...(await readValues(after.get(name)!))]).toEqual([1, -2]);
    for (const [i, value] of (await readValues(after.get('to_q.weight')!)).entries())
      expect(value).toBeCloseTo(i % 2 === 0 ? 1 : -2, 1);
  });

  it('goes on with what an earlier conversion has written, wherever it ended', async () => {
    await convert('int8');
    const whole = readFileSync(file);
    for (let length = 0; length <= whole.length; length += 501) {
      rmSync(file);
      writeFileSync(part, whole.subarray(0, length));
      const told: number[] = [];
      await convert('int8', (bytes) => told.push(bytes));
      expect(readFileSync(file).equals(whole)).toBe(true);
      expect(existsSync(part)).toBe(false);
      expect([told, told.at(-1)]).toEqual([told.toSorted((a, b) => a - b), whole.length]);
      if (length > whole.length / 2) expect(told[0]).toBeGreaterThan(whole.length / 4);
    }
  });

  it('begins again after what is of another model', async () => {
    await convert('int8');
    const whole = readFileSync(file);
    rmSync(file);
    const other = Buffer.from(whole);
    other[100] ^= 1;
    writeFileSync(part, other);
    await convert('int8');
    expect(readFileSync(file).equals(whole)).toBe(true);
  });

  it('does not write into a file that is linked', async () => {
    const other = join(folder, 'other.safetensors');
    writeFileSync(other, 'of another model');
    linkSync(other, file);
    await convert('int8');
    expect(readFileSync(other, 'utf8')).toBe('of another model');
  });

  it('ends between two pieces when it is broken off, and leaves no file of that name', async () => {
    const stop = new AbortController();
    let calls = 0;
    const converting = convert('int8', () => ++calls === 3 && stop.abort(), stop.signal);
    await expect(converting).rejects.toThrow('aborted');
    expect([existsSync(file), existsSync(part)]).toEqual([false, true]);
    truncateSync(part, 10);
    await convert('int8');
  });
});
