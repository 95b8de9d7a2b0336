import type { LatentShape } from '../tensor/planes';
import { fitLatentRgbMap } from '../../scripts/fit-latent-preview';
import { previewLatents } from './latent-preview';

describe(previewLatents.name, () => {
  it('maps every position of the latents to a pixel', () => {
    const map = {
      weights: [
        [1, 0],
        [0, 1],
        [0.5, 0.5],
      ],
      bias: [0, 0, 0.2],
    };
    // prettier-ignore
    const latents = Float32Array.of(0, 1,  0.4, 2);
    expect(previewLatents(latents, [2, 1, 2], map)).toEqual({
      width: 2,
      height: 1,
      data: Uint8Array.of(0, 102, 102, 255, 255, 255),
    });
  });

  it('shows a colour where its mask is, by a weight for their product', () => {
    // The products of two channels: 0 0, 0 1, 1 1.
    const row = [0, 0, 0, 1, 0];
    const latents = Float32Array.of(0.4, 0.4, 0, 1);
    expect(previewLatents(latents, [2, 1, 2], { weights: [row, row, row], bias: [0, 0, 0] }).data).toEqual(
      Uint8Array.of(0, 0, 0, 102, 102, 102),
    );
  });

  it('stretches the first three channels when there is no map', () => {
    const latents = Float32Array.of(-3, 3, 5, 5, 10, 0, 7, 7);
    expect([...previewLatents(latents, [4, 1, 2]).data]).toEqual([0, 128, 255, 255, 128, 0]);
  });

  it('shows NaN as black', () => {
    const map = { weights: [[1], [1], [1]], bias: [0, 0, 0] };
    expect([...previewLatents(Float32Array.of(NaN), [1, 1, 1], map).data]).toEqual([0, 0, 0]);
  });
});

describe(fitLatentRgbMap.name, () => {
  it('recovers the map that the pictures were made with', () => {
    const shape: LatentShape = [2, 4, 4];
    const latents = Float32Array.from({ length: 32 }, (_, i) => Math.sin(i * i));
    const truth = {
      weights: [
        [0.2, 0.1],
        [-0.3, 0.05],
        [0, 0.25],
      ],
      bias: [0.5, 0.45, 0.6],
    };
    const small = previewLatents(latents, shape, truth);
    const data = new Uint8Array(8 * 8 * 3);
    for (let y = 0; y < 8; y++)
      for (let x = 0; x < 8; x++)
        for (let c = 0; c < 3; c++) data[(y * 8 + x) * 3 + c] = small.data[((y >> 1) * 4 + (x >> 1)) * 3 + c];
    const fitted = fitLatentRgbMap([{ latents, shape, image: { width: 8, height: 8, data } }]);
    fitted.weights.forEach((row, colour) =>
      row.forEach((weight, channel) => expect(weight).toBeCloseTo(truth.weights[colour][channel], 2)),
    );
    fitted.bias.forEach((bias, colour) => expect(bias).toBeCloseTo(truth.bias[colour], 2));
  });

  it('finds that one channel is where the other shows', () => {
    const shape: LatentShape = [2, 8, 8];
    const latents = Float32Array.from({ length: 128 }, (_, i) => (i < 64 ? (i % 8) / 8 : i % 3 === 0 ? 1 : 0));
    const row = [0, 0, 0, 1, 0];
    const truth = { weights: [row, row, row], bias: [0, 0, 0] };
    const sample = { latents, shape, image: previewLatents(latents, shape, truth) };
    const drawn = previewLatents(latents, shape, fitLatentRgbMap([sample], { products: true }));
    drawn.data.forEach((value, index) => expect(Math.abs(value - sample.image.data[index])).toBeLessThanOrEqual(1));
    const linear = previewLatents(latents, shape, fitLatentRgbMap([sample]));
    expect(linear.data.some((value, index) => Math.abs(value - sample.image.data[index]) > 20)).toBe(true);
  });
});
