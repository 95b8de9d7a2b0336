import { Tensor } from 'onnxruntime-node';
import type { GraphSession } from '../model/model-session';
import { guidanceEmbedding, hasCallsInPowersOfTwo, powerOfTwoFrom, powerOfTwoUpTo, Unet } from './unet';

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

describe(guidanceEmbedding, () => {
  it('is a row of sines and of cosines, and of no angle without guidance', () => {
    expect([...guidanceEmbedding(1, 8)]).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  });

  it('ends with 0 if its width is odd', () => {
    expect(guidanceEmbedding(8.5, 9)[8]).toBe(0);
  });

  // diffusers' get_guidance_scale_embedding(torch.tensor([7.5]), 8)
  it('has the values of diffusers', () => {
    const expected = [-0.8512359, 0.5626711, -0.435233, 0.6816387, -0.5247833, -0.8266808, -0.9003178, 0.7316889];
    guidanceEmbedding(8.5, 8).forEach((value, i) => expect(value).toBeCloseTo(expected[i], 5));
  });
});

describe(hasCallsInPowersOfTwo.name, () => {
  it('is so on each GPU, and not on the processor', () => {
    expect((['cpu', 'webgpu', 'cuda:1'] as const).map(hasCallsInPowersOfTwo)).toEqual([false, true, true]);
  });
});

describe(powerOfTwoFrom.name, () => {
  it('is the next power of two upwards, as the one below is downwards', () => {
    expect([1, 2, 3, 5, 16, 33].map(powerOfTwoFrom)).toEqual([1, 2, 4, 8, 16, 64]);
    expect([1, 2, 3, 5, 16, 33].map(powerOfTwoUpTo)).toEqual([1, 2, 2, 4, 16, 32]);
  });
});
