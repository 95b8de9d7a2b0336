import { type SchedulerConfig, SchedulerError } from './scheduler-config';

const { fround } = Math;

/**
 * The share of signal left at each training timestep (alpha-bar of DDPM, `alphas_cumprod` of diffusers), float32. It
 * rounds exactly as torch does, because the resulting sigmas and timesteps must equal diffusers'.
 */
export function alphasCumprod(config: SchedulerConfig): Float32Array {
  const products = cumulativeProduct((config.trainedBetas ?? betas(config)).map((beta) => 1 - beta));
  if (!(products[products.length - 1] > 1e-30))
    throw new SchedulerError('The betas leave no signal at the last timestep.');
  return config.rescaleBetasZeroSnr ? cumulativeProduct(zeroTerminalSnr(products)) : products;
}

/** sqrt((1 - a) / a) of each share of signal: the noise level in the scaling of Karras et al. (2022), float32. */
export function noiseLevels(alphasCumprod: Float32Array): Float32Array {
  return alphasCumprod.map((alpha) => Math.sqrt(fround(fround(1 - alpha) / alpha)));
}

/**
 * As {@link noiseLevels}, for solvers that divide by the share of signal: with zero SNR diffusers replaces the zero at
 * the last timestep by 2^-24, the smallest step of half precision.
 */
export function finiteAlphasCumprod(config: SchedulerConfig): Float32Array {
  const alphas = alphasCumprod(config);
  if (config.rescaleBetasZeroSnr) alphas[alphas.length - 1] = 2 ** -24;
  return alphas;
}

function betas(config: SchedulerConfig): Float32Array {
  const { betaStart, betaEnd, numTrainTimesteps: count } = config;
  if (config.betaSchedule === 'linear') return linspaceFloat32(betaStart, betaEnd, count);
  if (config.betaSchedule === 'scaled_linear')
    return linspaceFloat32(Math.sqrt(betaStart), Math.sqrt(betaEnd), count).map((root) => root * root);
  const alphaBar = (t: number) => Math.cos((((t + 0.008) / 1.008) * Math.PI) / 2) ** 2;
  return Float32Array.from({ length: count }, (_, i) =>
    Math.min(1 - alphaBar((i + 1) / count) / alphaBar(i / count), 0.999),
  );
}

/** `torch.linspace` in float32: counted from both ends to the middle, with one rounding per multiply and add. */
function linspaceFloat32(start: number, end: number, count: number): Float32Array {
  const first = fround(start);
  const last = fround(end);
  const step = fround(fround(last - first) / (count - 1));
  const middle = Math.floor(count / 2);
  return Float32Array.from({ length: count }, (_, i) =>
    i < middle ? first + step * i : last - step * (count - 1 - i),
  );
}

/** `torch.cumprod`, which multiplies in double precision and stores float32. */
function cumulativeProduct(factors: Float32Array): Float32Array {
  let product = 1;
  return factors.map((factor) => (product *= factor));
}

/**
 * Source: Lin et al., "Common Diffusion Noise Schedules and Sample Steps are Flawed" (2023), algorithm 1. Gives alphas.
 */
function zeroTerminalSnr(products: Float32Array): Float32Array {
  const roots = products.map(Math.sqrt);
  const first = roots[0];
  const last = roots[roots.length - 1];
  const scale = fround(first / fround(first - last));
  const shares = roots.map((root) => {
    const scaled = fround(fround(root - last) * scale);
    return scaled * scaled;
  });
  // diffusers converts the alphas to betas and back, which rounds them once more.
  return shares.map((share, t) => 1 - fround(1 - fround(t === 0 ? share : share / shares[t - 1])));
}
