import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeSafetensors, type TensorToWrite } from '../../../../test/support/safetensors';
import { int8Metadata } from './int8-form';
import { readValues, rowsOf, WeightsFileError } from './named-tensor';
import { readSafetensors } from './safetensors-file';

const folder = mkdtempSync(join(tmpdir(), 'int8-'));
afterAll(() => rmSync(folder, { recursive: true }));

const weight: TensorToWrite = { dtype: 'I8', shape: [2, 4], values: [1, 2, 3, 4, -4, 0, 0, 0] };
const scale: TensorToWrite = { shape: [2, 1], values: [0.5, 2] };

function read(tensors: Record<string, TensorToWrite>, metadata?: Record<string, string>) {
  const file = join(folder, 'model.safetensors');
  writeFileSync(file, encodeSafetensors({ 'to_q.weight': weight, ...tensors }, metadata));
  return readSafetensors(file);
}

const text = (json: object): TensorToWrite => {
  const values = [...Buffer.from(JSON.stringify(json))];
  return { dtype: 'I8', shape: [values.length], values };
};

describe('A weight in int8', () => {
  it('is multiplied by the scale of its output, and belongs to it', async () => {
    const tensors = await read({ 'to_q.weight_scale': scale }, int8Metadata(new Map([['to_q', 1]])));
    expect([...tensors.keys()]).toEqual(['to_q.weight']);
    expect([...(await readValues(tensors.get('to_q.weight')!))]).toEqual([0.5, 1, 1.5, 2, -8, 0, 0, 0]);
    expect([...(await readValues(rowsOf(tensors.get('to_q.weight')!, 1, 2)))]).toEqual([-8, 0, 0, 0]);
  });

  it.each<[string, Record<string, TensorToWrite>, Record<string, string>]>([
    ['metadata', {}, int8Metadata(new Map([['to_q', 4]]))],
    ['a text beside it', { 'to_q.comfy_quant': text({ convrot: true, convrot_groupsize: 4 }) }, {}],
  ])('is rotated where %s says so', async (_, beside, metadata) => {
    const tensors = await read({ 'to_q.weight_scale': scale, ...beside }, metadata);
    expect([...(await readValues(tensors.get('to_q.weight')!))]).toEqual([0.5, 1, 1.5, 2, -4, -4, -4, 4]);
  });

  it.each<[string, object]>([
    ['of another format', { format: 'asym_w4a8_int8' }],
    ['of blocks that do not fit', { convrot: true, convrot_groupsize: 16 }],
    ['of blocks of another number', { convrot: true, convrot_groupsize: 2 }],
  ])('is refused if it is %s', async (_, form) => {
    const reading = read({ 'to_q.weight_scale': scale, 'to_q.comfy_quant': text(form) });
    await expect(reading).rejects.toThrow(WeightsFileError);
  });

  it.each<[string, Record<string, string>]>([
    ['no metadata', {}],
    ['metadata of no layers', { _quantization_metadata: '{"layers":5}' }],
    ['metadata that is null', { _quantization_metadata: 'null' }],
    ['a form without values', { _quantization_metadata: '{"layers":{"to_q":5}}' }],
    ['the form of another layer', int8Metadata(new Map([['to_k', 4]]))],
  ])('is refused beside %s, where it may be rotated or not', async (_, metadata) => {
    await expect(read({ 'to_q.weight_scale': scale }, metadata)).rejects.toThrow(
      'The weight "to_q.weight" is in int8, and nothing in the file tells in which form.',
    );
  });

  it('is no weight without a scale for each output', async () => {
    expect([...(await read({ 'to_q.weight_scale': { shape: [1], values: [1] } })).keys()]).toEqual([
      'to_q.weight_scale',
    ]);
  });
});
