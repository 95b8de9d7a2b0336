import { mutations } from '../../../../test/support/mutations';
import { BufferSource } from '../tensor/byte-source';
import { isFiniteTensor, readFloats } from './safetensors';
import { readSafetensorsHeader, SafetensorsError } from './safetensors-header';

function file(header: string, data: Uint8Array | number = 8): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(header)));
  return Buffer.concat([length, Buffer.from(header), typeof data === 'number' ? Buffer.alloc(data) : data]);
}

const tensor = (begin: number, end: number, dtype = 'F32', shape = [(end - begin) / 4]) =>
  JSON.stringify({ dtype, shape, data_offsets: [begin, end] });

const longHeader = Buffer.from([0x00, 0xe1, 0xf5, 0x05, 0, 0, 0, 0]);
const emptyTensors = (count: number) => `{${Array.from({ length: count }, (_, i) => `"${i}":{"dtype":"F32"}`).join()}}`;

describe('readSafetensorsHeader', () => {
  it('returns types, shapes, positions in the file and metadata', () => {
    const header = `{"__metadata__":{"format":"pt"},"a":${tensor(0, 8)},"b":${tensor(8, 8)}}  `;
    const { tensors, metadata } = readSafetensorsHeader(new BufferSource(file(header)));
    expect(tensors.get('a')).toEqual({ dtype: 'F32', shape: [2], begin: 8 + header.length, end: 16 + header.length });
    expect(tensors.get('b')).toMatchObject({ shape: [0] });
    expect([...metadata]).toEqual([['format', 'pt']]);
  });

  it.each<[string, Buffer, RegExp]>([
    ['an empty file', Buffer.alloc(0), /0 bytes long/],
    ['a length past the end', Buffer.from([255, 0, 0, 0, 0, 0, 0, 0, 123, 125]), /claims 255 bytes/],
    ['a length of 2^63', Buffer.from([0, 0, 0, 0, 0, 0, 0, 128, 123, 125]), /at most/],
    ['a page that a browser would show', Buffer.from('<!doctype html><html></html>'), /web page/],
    ['broken JSON', file('{"a":'), /not valid JSON/],
    ['bytes that are not UTF-8', Buffer.concat([file('', 0), Buffer.from('{"\xff":1}', 'latin1')]), /JSON/],
    ['a list as the header', file('[]'), /not a JSON object/],
    ['a number as a tensor', file('{"a":1}'), /entry of "a" is not a JSON object/],
    ['an unknown type', file(`{"a":${tensor(0, 8, 'F8')}}`), /type "F8"/],
    ['an inherited name for a type', file(`{"a":${tensor(0, 8, 'constructor')}}`), /type "constructor"/],
    ['a negative size', file(`{"a":${tensor(0, 8, 'F32', [-2])}}`), /no valid shape/],
    ['a fractional size', file(`{"a":${tensor(0, 8, 'F32', [0.5])}}`), /no valid shape/],
    ['a size that overflows', file(`{"a":${tensor(0, 8, 'F32', [2 ** 52, 2 ** 52])}}`), /needs .* bytes/],
    ['three offsets', file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}'), /no valid data offsets/],
    ['offsets in reverse order', file(`{"a":${tensor(8, 0, 'F32', [2])}}`), /outside/],
    ['offsets past the end', file(`{"a":${tensor(0, 12)}}`), /outside the 8 bytes/],
    ['a wrong byte count', file(`{"a":${tensor(0, 8, 'F16', [2])}}`), /needs 4 bytes, but has 8/],
    ['an overlap', file(`{"a":${tensor(0, 8)},"b":${tensor(4, 8)}}`), /"b" overlaps/],
    ['a gap at the start', file(`{"a":${tensor(4, 8)}}`), /gap of 4 bytes before the tensor "a"/],
    [
      'a gap in between',
      file(`{"a":${tensor(0, 4)},"b":${tensor(8, 12)}}`, 12),
      /gap of 4 bytes before the tensor "b"/,
    ],
    ['bytes left over', file(`{"a":${tensor(0, 4)}}`), /4 bytes after the last tensor/],
    ['a tensor named twice', file(`{"a":${tensor(0, 8)},"\\u0061":${tensor(0, 8)}}`), /key "a" twice/],
    [
      'a type given twice',
      file('{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
      /"dtype" twice/,
    ],
    ['an unknown key', file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}'), /unknown key "x"/],
    ['metadata that is not a string', file('{"__metadata__":{"n":1}}', 0), /metadata "n"/],
    ['a header of 100 MB', Buffer.concat([longHeader, Buffer.alloc(100)]), /claims 100000000 bytes; at most/],
    ['a header of a million levels', file('['.repeat(1_000_000)), /more than 3 levels/],
    ['a million tensors without a size', file(emptyTensors(250_000)), /more than 100000 keys/],
    ['a million objects', file(`{"a":{"shape":[${'{},'.repeat(1_000_000)}`), /more than 3 levels/],
    ['a name of a megabyte', file(`{"${'x'.repeat(1_000_000)}":${tensor(0, 8)}}`), /name of more than 1000/],
    ['a shape of a million ones', file(`{"a":{"shape":[${'1,'.repeat(1_000_000)}1]}}`), /more than 8 elements/],
    ['a list of a million lists', file(`[${'[],'.repeat(1_000_000)}[]]`), /more than 8 elements/],
    ['a string without an end', file(`{"a":"${'x'.repeat(1_000_000)}`), /not valid JSON/],
    ['brackets that were never opened', file(']'.repeat(1_000_000)), /not valid JSON/],
  ])('refuses %s', (_, bytes, sentence) => {
    const read = () => readSafetensorsHeader(new BufferSource(bytes));
    expect(read).toThrow(SafetensorsError);
    expect(read).toThrow(sentence);
  });

  it('rejects any damaged header with a plain error', () => {
    const good = file(`{"__metadata__":{"k":"v"},"ab":${tensor(0, 8)},"cd":${tensor(8, 16, 'F16', [2, 2])}}`, 16);
    let refused = 0;
    for (const bytes of mutations(good, 5000)) {
      try {
        readSafetensorsHeader(new BufferSource(bytes));
      } catch (error) {
        expect(error).toBeInstanceOf(SafetensorsError);
        expect((error as Error).message).toMatch(/^[A-Z].*\.$/s);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(2500);
  });
});

describe(readFloats.name, () => {
  const read = (dtype: string, bytes: Uint8Array, count: number) => {
    const source = new BufferSource(file(`{"a":${tensor(0, bytes.length, dtype, [count])}}`, bytes));
    return [...readFloats(source, readSafetensorsHeader(source).tensors.get('a')!)];
  };

  it.each<[string, ArrayBufferView, number[]]>([
    ['F64', new Float64Array([1.5, -2]), [1.5, -2]],
    ['F32', new Float32Array([0.1, -3]), [Math.fround(0.1), -3]],
    ['F16', new Uint16Array([0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00]), [1, -2, 2 ** -24, 65504, Infinity]],
    ['BF16', new Uint16Array([0x3f80, 0xc040, 0x0080]), [1, -3, 2 ** -126]],
    ['I64', new BigInt64Array([-5n, 7n]), [-5, 7]],
    ['I32', new Int32Array([-5, 7]), [-5, 7]],
    ['U8', new Uint8Array([0, 255]), [0, 255]],
  ])('reads %s', (dtype, data, expected) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    expect(read(dtype, bytes, expected.length)).toEqual(expected);
  });
});

describe(isFiniteTensor.name, () => {
  const judge = (dtype: string, data: ArrayBufferView) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const shape = [data.byteLength / (data as Float32Array).BYTES_PER_ELEMENT];
    const source = new BufferSource(file(`{"a":${tensor(0, bytes.length, dtype, shape)}}`, bytes));
    return isFiniteTensor(source, readSafetensorsHeader(source).tensors.get('a')!);
  };

  it.each<[string, ArrayBufferView, boolean]>([
    ['F64', new Float64Array([1, -1e38]), true],
    ['F64', new Float64Array([1, 1e300]), false],
    ['F32', new Float32Array([3e38, -0]), true],
    ['F32', new Float32Array([0, -Infinity]), false],
    ['F32', new Float32Array([NaN]), false],
    ['F16', new Uint16Array([0x7bff, 0xfbff]), true],
    ['F16', new Uint16Array([0, 0xfc00]), false],
    ['BF16', new Uint16Array([0x7f7f]), true],
    ['BF16', new Uint16Array([0x7fc0]), false],
  ])('judges %s %j: %s', (dtype, data, isFinite) => {
    expect(judge(dtype, data)).toBe(isFinite);
  });

  it('reads beyond the first piece', () => {
    const values = new Float32Array(3_000_000);
    expect(judge('F32', values)).toBe(true);
    values[values.length - 1] = NaN;
    expect(judge('F32', values)).toBe(false);
  });
});
