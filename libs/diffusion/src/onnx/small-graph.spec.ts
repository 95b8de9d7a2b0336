import { InferenceSession, Tensor } from 'onnxruntime-node';
import { gemmModel, identityModel } from './small-graph';

const matrix = (values: number[], dims: number[]) => new Tensor('float32', Float32Array.from(values), dims);

describe(gemmModel.name, () => {
  it('adds a product of two matrices to a third', async () => {
    const session = await InferenceSession.create(gemmModel());
    const { sum } = await session.run({
      left: matrix([1, 2], [2, 1]),
      right: matrix([3, 4, 5], [1, 3]),
      weight: matrix([1, 1, 1, 0, 0, 0], [2, 3]),
    });
    expect([...(sum.data as Float32Array)]).toEqual([4, 5, 6, 6, 8, 10]);
  });
});

describe(identityModel.name, () => {
  it('returns its input', async () => {
    const session = await InferenceSession.create(identityModel());
    const { y } = await session.run({ x: matrix([0.5, -2], [2]) });
    expect([...(y.data as Float32Array)]).toEqual([0.5, -2]);
  });
});
