import { Tensor } from 'onnxruntime-node';
import type { GraphSession } from '../model/model-session';
import { Unet } from './unet';

/** A U-Net in which one value overflows for samples with a value above this. */
const overflowing = (above: number): Unet => {
  const value = (name: string, shape: (number | string)[]) => ({ name, type: 'float32', shape });
  const latents = ['batch', 4, 8, 8];
  const session: GraphSession = {
    file: 'unet/model.onnx',
    inputs: [value('sample', latents), value('timestep', []), value('encoder_hidden_states', ['batch', 'sequence', 2])],
    outputs: [value('out_sample', latents)],
    spent: { runs: 0, runMs: 0 },
    run: async ({ sample }) => {
      const values = Float32Array.from(sample.data as Float32Array);
      if (values.some((each) => each > above)) values[7] = Infinity;
      return new Tensor('float32', values, sample.dims);
    },
    release: async () => undefined,
  };
  return new Unet(session);
};
const probe = (unet: Unet) => unet.probe([4, 8, 8], new Float32Array(6), 2);

describe(Unet.name, () => {
  describe('probe', () => {
    it('takes a U-Net that overflows for one sample and not for an easier one', async () => {
      await expect(probe(overflowing(0.5))).resolves.toBeUndefined();
    });

    it('refuses one that overflows for every sample', async () => {
      await expect(probe(overflowing(-1))).rejects.toThrow('unet/model.onnx gives numbers that are not finite');
    });
  });
});
