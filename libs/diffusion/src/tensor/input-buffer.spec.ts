import { Tensor } from 'onnxruntime-node';
import { InputBuffer, toFloat32 } from './input-buffer';

describe(InputBuffer.name, () => {
  it('shares memory with a float32 tensor', () => {
    const buffer = new InputBuffer('float32', [2, 2]);
    buffer.values.set([1, 2, 3, 4]);
    expect([...(buffer.commit().data as Float32Array)]).toEqual([1, 2, 3, 4]);
    expect(buffer.tensor.dims).toEqual([2, 2]);
  });

  it('holds one number for a shape of rank 0', () => {
    const buffer = new InputBuffer('int64', []);
    buffer.values[0] = 980.6;
    expect([...(buffer.commit().data as BigInt64Array)]).toEqual([981n]);
  });

  it('rounds to int32', () => {
    const buffer = new InputBuffer('int32', [2]);
    buffer.values.set([49407, -1.4]);
    expect([...(buffer.commit().data as Int32Array)]).toEqual([49407, -1]);
  });

  it('reads back the float16 values it wrote', () => {
    const buffer = new InputBuffer('float16', [3]);
    buffer.values.set([1, -0.5, 1 / 3]);
    const back = toFloat32(buffer.commit());
    expect(back[0]).toBe(1);
    expect(back[1]).toBe(-0.5);
    expect(Math.abs(back[2] - 1 / 3)).toBeLessThan(2 ** -12);
  });

  it('shows the bits of float16 values, whether or not the runtime has Float16Array', () => {
    const buffer = new InputBuffer('float16', [2, 1]);
    buffer.values.set([1, -2]);
    expect(buffer.commit().data).toEqual(Uint16Array.of(0x3c00, 0xc000));
    expect(buffer.rows(1, 1).data).toEqual(Uint16Array.of(0xc000));
  });
});

describe(toFloat32.name, () => {
  it('rejects integers', () => {
    expect(() => toFloat32(new Tensor('int32', Int32Array.of(1), [1]))).toThrow('int32');
  });
});
