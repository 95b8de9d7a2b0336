import { sampleLatents } from '../autoencoders/autoencoder';
import { Generator, MersenneTwister } from '../random/generator';
import type { LatentShape } from '../tensor/planes';
import type { Example, Examples } from './examples';
import type { Noising, TrainingRow } from './noise';
import type { TrainingSettings } from './settings';

/** The rows of a step: all of them follow from the seed and the step, and all rows have one size. */
export function rowsOfStep(
  { shown, prior, noText }: Examples,
  noising: Noising,
  settings: TrainingSettings,
  step: number,
): TrainingRow[] {
  const { seed, batch, priorShare, captionDropout, minSnrGamma, offsetNoise } = settings;
  const seedOfStep = (Math.imul(seed, 0x9e3779b1) + step + 1) >>> 0;
  // Another seed than that of the noise: the same numbers would bind a time to its noise.
  const random = new MersenneTwister((seedOfStep ^ 0x5bd1e995) >>> 0);
  const generator = new Generator(seedOfStep);
  const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random.uniform() * list.length)];
  // The first picture decides the size of the others.
  const size = sizeOf(oneOf(shown));
  const own = shown.filter((each) => sizeOf(each) === size);
  const others = prior.filter((each) => sizeOf(each) === size);
  return Array.from({ length: batch }, () => {
    if (random.uniform() < priorShare && others.length > 0) return { ...oneOf(others), weight: 1 };
    const example = oneOf(own);
    const isSilent = random.uniform() < captionDropout;
    const time = random.uniform();
    const noise = generator.randn(example.mean.length);
    if (offsetNoise > 0) addOffset(noise, generator.randn(example.shape[0]), offsetNoise);
    const latents = sampleLatents(example, generator);
    const text = isSilent ? noText : example.text;
    return noising.row({ ...example, text }, latents, noise, time, minSnrGamma);
  });
}

/** An example at some times that are spread evenly, each with noise that is always the same. */
export function rowsToJudge(example: Example, noising: Noising, times: number): TrainingRow[] {
  return Array.from({ length: times }, (_, i) =>
    noising.row(example, example.mean, new Generator(i).randn(example.mean.length), (i + 0.5) / times),
  );
}

export const sizeOf = ({ shape: [, height, width] }: { shape: LatentShape }): string => `${height}x${width}`;

function addOffset(noise: Float32Array, offsets: Float32Array, share: number): void {
  const positions = noise.length / offsets.length;
  for (let i = 0; i < noise.length; i++) noise[i] += share * offsets[Math.floor(i / positions)];
}
