import { guidanceEmbedding } from './guidance-embedding';

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
