import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { ModelSession, readModelFolder, Pipeline } from '@app/diffusion';
import type { VaeFiles } from '../../libs/diffusion/src/autoencoders/vae';
import { placeGraph } from '../../libs/diffusion/src/sessions/placed-graph';
import type { RgbImage } from '../../libs/diffusion/src/tensor/planes';
import { cpu } from '../support/cpu';
import { readPng } from '../support/pipeline-goldens';
import { psnr } from '../support/psnr';

const shapes = join(__dirname, '../../models/shapes');

/** [1, 3, height, width] from -1 to 1 */
function toTensor({ data, width, height }: RgbImage): Tensor {
  const size = width * height;
  const values = Float32Array.from(
    { length: 3 * size },
    (_, i) => data[(i % size) * 3 + Math.floor(i / size)] / 127.5 - 1,
  );
  return new Tensor('float32', values, [1, 3, height, width]);
}

describe("The bundled model's encoder", () => {
  let pipeline: Pipeline;
  let encoder: ModelSession;
  beforeAll(async () => {
    const { autoencoder } = await readModelFolder(shapes);
    const built = (autoencoder as VaeFiles).use.encoder({ tensors: autoencoder.tensors });
    encoder = await ModelSession.open(placeGraph(built.graph, shapes), cpu);
    pipeline = await Pipeline.load(shapes, cpu);
  });
  afterAll(() => Promise.all([encoder.release(), pipeline.release()]));

  it('gives latents from which pictures of its kind come again, at 27 dB or more', async () => {
    let error = 0;
    const pictures = [3, 4, 12, 13];
    for (const index of pictures) {
      const picture = await readPng(join(__dirname, 'data/shapes', `${index}.png`));
      const { latent_parameters: parameters } = await encoder.run({ sample: toTensor(picture) });
      const [, channels, height, width] = parameters.dims;
      // Means come first, then logarithms of variances; its scaling factor is 1.
      const latents = (parameters.data as Float32Array).slice(0, (channels / 2) * height * width);
      const decoded = await pipeline.decode({ latents, shape: [channels / 2, height, width] });
      error += 10 ** (-psnr(decoded, picture) / 10) / pictures.length;
    }
    expect(-10 * Math.log10(error)).toBeGreaterThanOrEqual(27);
  });
});
