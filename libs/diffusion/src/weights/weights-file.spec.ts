import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SafetensorsDtype } from '../safetensors/safetensors-header';
import { safetensorsHeader } from '../safetensors/write-safetensors';
import { readValues, rowsOf, UnknownFormError } from './named-tensor';
import { readWeightsFile } from './weights-file';

const folder = mkdtempSync(join(tmpdir(), 'forms-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Stored {
  dtype: SafetensorsDtype;
  shape: number[];
  bytes: Uint8Array;
}
const float32 = (...values: number[]): Stored => ({
  dtype: 'F32',
  shape: values.length > 1 ? [values.length, 1] : [],
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const bytes = (dtype: SafetensorsDtype, ...values: number[]): Stored => {
  return { dtype, shape: [values.length], bytes: Uint8Array.from(values) };
};
const text = (json: object): Stored => bytes('U8', ...Buffer.from(JSON.stringify(json)));

/** 1, 2, -1 and 0.5 as numbers of four exponent bits. */
const weight: Stored = { dtype: 'F8_E4M3', shape: [2, 2], bytes: Uint8Array.of(0x38, 0x40, 0xb8, 0x30) };
const wide: Stored = { dtype: 'F8_E5M2', shape: [2, 2], bytes: Uint8Array.of(0x3c, 0x40, 0xbc, 0x38) };

function read(tensors: Record<string, Stored>, metadata?: Record<string, string>) {
  const file = join(folder, 'model.safetensors');
  const all = new Map(Object.entries(tensors));
  const data = [...all.values()].map((tensor) => tensor.bytes);
  writeFileSync(file, Buffer.concat([safetensorsHeader(all, metadata), ...data]));
  return readWeightsFile(file);
}

describe('A weight in float8', () => {
  it.each<[string, Record<string, Stored>, number[]]>([
    ['no scale', { 'to_q.weight': weight }, [1, 2, -1, 0.5]],
    ['a scale', { 'to_q.weight': weight, 'to_q.weight_scale': float32(3) }, [3, 6, -3, 1.5]],
    [
      'a scale of the other name, and one for its inputs',
      { scaled_fp8: float32(0), 'to_q.weight': wide, 'to_q.scale_weight': float32(3), 'to_q.scale_input': float32(9) },
      [3, 6, -3, 1.5],
    ],
    [
      'a scale for each row, in a form that the file tells',
      {
        'to_q.weight': weight,
        'to_q.weight_scale': float32(3, 5),
        'to_q.input_scale': float32(9),
        'to_q.comfy_quant': text({ format: 'float8_e4m3fn' }),
      },
      [3, 6, -5, 2.5],
    ],
  ])('has %s', async (_, tensors, values) => {
    const found = (await read(tensors)).tensors;
    expect([...found.keys()]).toEqual(['to_q.weight']);
    expect([...(await readValues(found.get('to_q.weight')!))]).toEqual(values);
    expect([...(await readValues(rowsOf(found.get('to_q.weight')!, 1, 2)))]).toEqual(values.slice(2));
  });
});

it.each<[string, Record<string, Stored>, string]>([
  ['a scale of powers of two', { 'to_q.weight_scale': bytes('U8', 1, 2) }, '"to_q.weight_scale" of type U8'],
  [
    'a scale for each block',
    { 'to_q.weight_scale': float32(1, 2, 3, 4) },
    '"to_q.weight_scale" is no scale that is read',
  ],
  [
    'two scales',
    { 'to_q.weight': bytes('F8_E4M3', 2, 2), 'to_q.weight_scale': float32(1), 'to_q.scale_weight': float32(5) },
    '"to_q.weight" has two scales',
  ],
  ['a scale of no weight', { 'to_k.weight_scale': float32(1) }, '"to_k.weight_scale" is no scale that is read'],
  ['a second scale', { 'to_q.weight_scale_2': float32(1) }, '"to_q.weight_scale_2" is of a form'],
  ['four bits', { 'to_k.weight': bytes('U8', 1) }, '"to_k" has "to_k.weight" of type U8'],
  ['bitsandbytes', { 'to_q.weight.absmax': float32(1) }, '"to_q.weight.absmax" is of a form'],
  ['a form of its own', { 'to_q.comfy_quant': text({ format: 'nvfp4' }) }, 'layer "to_q" is in the form "nvfp4"'],
])('Numbers with %s are in a form that is not read', async (_, beside, message) => {
  const reading = read({ 'to_q.weight': weight, ...beside });
  await expect(reading).rejects.toThrow(UnknownFormError);
  await expect(reading).rejects.toThrow(message);
});
