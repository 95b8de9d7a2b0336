const { fround } = Math;

/**
 * The guidance scale as a distilled U-Net takes it (`timestep_cond`): sines and cosines of falling
 * frequencies, in float32.
 * Source: `get_guidance_scale_embedding` of diffusers' LatentConsistencyModelPipeline, which embeds the scale minus
 * one; Luo et al., "Latent Consistency Models" (2023), section 4.2.
 * @param width an even number of values, or an odd one whose last value is 0
 */
export function guidanceEmbedding(guidanceScale: number, width: number): Float32Array {
  const half = Math.floor(width / 2);
  const values = new Float32Array(width);
  const scale = fround(fround(guidanceScale - 1) * 1000);
  const falling = fround(fround(Math.log(10_000)) / (half - 1));
  for (let i = 0; i < half; i++) {
    const angle = fround(scale * fround(Math.exp(fround(-falling * i))));
    values[i] = Math.sin(angle);
    values[half + i] = Math.cos(angle);
  }
  return values;
}
