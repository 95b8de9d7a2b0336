import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { encodeGguf, type GgufTensor } from '../../../../test/support/gguf';
import { BufferSource } from '../tensor/byte-source';
import { readGguf } from './gguf-file';
import { type NamedTensors, readValues, rowsOf, UnknownFormError, WeightsFileError } from './named-tensor';
import { readSafetensors } from './safetensors-file';
import { readGgufHeader } from '../gguf/gguf-header';

const folder = mkdtempSync(join(tmpdir(), 'gguf-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('A tensor of a GGUF file', () => {
  /** Made by scripts/goldens/gguf_types.py. */
  let [tensors, expected]: NamedTensors[] = [];
  let metadata: ReadonlyMap<string, number | string>;
  beforeAll(async () => {
    for (const name of ['types.gguf', 'gguf.safetensors'])
      writeFileSync(join(folder, name), gunzipSync(readFileSync(`test/golden/data/${name}.gz`)));
    ({ tensors, metadata } = await readGguf(join(folder, 'types.gguf')));
    expected = await readSafetensors(join(folder, 'gguf.safetensors'));
  });

  it.each('F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K'.split(' '))(
    'has the values that the package gguf reads: %s',
    async (type) => {
      const tensor = tensors.get(type)!;
      expect(tensor).toMatchObject({ type, shape: [3, 512] });
      const [values, wanted] = [await readValues(tensor), await readValues(expected.get(type)!)];
      const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      for (const [i, value] of values.entries())
        expect(Math.abs(value - wanted[i])).toBeLessThanOrEqual(largest * 1e-6);
      expect(await readValues(rowsOf(tensor, 1, 2))).toEqual(values.subarray(512, 1024));
    },
  );

  it('is beside what the file says of its model', () => {
    expect(Object.fromEntries(metadata)).toEqual({ 'general.architecture': 'qwen3', 'qwen3.rope.freq_base': 1e6 });
  });
});

describe(readGgufHeader, () => {
  const tensor: GgufTensor = { type: 'Q4_0', shape: [2, 32], bytes: new Uint8Array(36) };
  const whole = encodeGguf(new Map([['a', tensor]]), { key: 'value' });
  const read = (bytes: Buffer) => () => readGgufHeader(new BufferSource(bytes));
  const changed = (change: (bytes: Buffer) => unknown): Buffer => {
    const bytes = Buffer.from(whole);
    change(bytes);
    return bytes;
  };

  it('finds where a tensor begins', () => {
    expect([...read(whole)().tensors]).toEqual([['a', { type: 'Q4_0', shape: [2, 32], begin: whole.length - 64 }]]);
  });

  it('refuses a file that ends anywhere', () => {
    for (let length = 0; length < whole.length - 28; length++)
      expect(read(whole.subarray(0, length))).toThrow(/begin as GGUF|inside its header|behind the end/);
  });

  it.each<[string, Buffer, RegExp]>([
    ['of another version', changed((b) => b.writeUInt32LE(1, 4)), /GGUF of version 1; 2 and 3/],
    ['of ten million tensors', changed((b) => b.writeBigUInt64LE(10_000_000n, 8)), /claims 10000000 tensors/],
    ['of as much metadata', changed((b) => b.writeBigUInt64LE(10_000_000n, 16)), /claims 10000000 metadata/],
    ['with a name without end', changed((b) => b.writeBigUInt64LE(2n ** 60n, 24)), /name of 1152921504606847000 bytes/],
    ['with a value that ends nowhere', changed((b) => b.writeBigUInt64LE(2n ** 60n, 39)), /inside its header/],
    ['with a value of no type', changed((b) => b.writeUInt32LE(77, 35)), /unknown type 77/],
    ['with half a block', encodeGguf(new Map([['a', { ...tensor, shape: [2, 16] }]])), /ends inside a block/],
    ['with a tensor that is too long', encodeGguf(new Map([['a', { ...tensor, shape: [9, 32] }]])), /behind the end/],
  ])('refuses a file %s', (_, bytes, message) => {
    expect(read(bytes)).toThrow(message);
    const file = join(folder, 'bad.gguf');
    writeFileSync(file, bytes);
    return expect(readGguf(file)).rejects.toThrow(WeightsFileError);
  });

  it('tells a type that is not read from a damaged file', async () => {
    const file = join(folder, 'q2.gguf');
    writeFileSync(file, encodeGguf(new Map([['a', { ...tensor, type: 'Q2_K' }]])));
    await expect(readGguf(file)).rejects.toThrow(UnknownFormError);
    await expect(readGguf(file)).rejects.toThrow(/"a" is of ggml's type 10; F32, F16, Q4_0, .*Q6_K, BF16 are read/);
  });
});
