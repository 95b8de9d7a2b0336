const { fround } = Math;

/** Numerator and denominator of the rational approximation to log(1 + x), highest power first. */
const numerator = [0.025899791179079226, 0.3808837741388408, 1.4800006335765066, 2.112677543073053, 1, 0].map(fround);
const denominator = [
  0.005875095403124574, 0.15464763749839067, 0.9864942958518419, 2.453006071784736, 2.6126775430731093, 1,
].map(fround);

/**
 * `numpy.log` of float32 values, to the last bit, for normal numbers above zero. Its error of up to four units in the
 * last place is visible in the fractional timesteps that diffusers passes to the denoiser with Karras sigmas.
 * Source: numpy's vectorised float32 logarithm (loops_exponent_log), a rational approximation of degree 5.
 */
export function logFloat32(values: Float32Array): Float32Array {
  return values.map((value) => {
    // 1. value = mantissa * 2^exponent, the mantissa between sqrt(1/2) and sqrt(2).
    let exponent = Math.floor(Math.log2(value));
    if (2 ** exponent > value) exponent--;
    if (fround(value / 2 ** exponent) > fround(Math.SQRT2)) exponent++;
    const x = fround(value / 2 ** exponent - 1);

    // 2. log(mantissa), plus the exponent's part.
    return fround(horner(numerator, x) / horner(denominator, x)) + exponent * fround(Math.LN2);
  });
}

/** Multiply and add with one rounding to float32, like the processor's fused instruction. */
function horner(coefficients: readonly number[], x: number): number {
  return coefficients.reduce((sum, coefficient) => fround(sum * x + coefficient), 0);
}

/** Both parameters of the beta distribution. Source: Lee et al., "Beta Sampling is All You Need" (2024). */
const shape = 0.6;
/** log of B(0.6, 0.6) = Gamma(0.6)^2 / Gamma(1.2). */
const logBeta = 2 * Math.log(1.4891922488128169) - Math.log(0.9181687423997604);
/** More than any argument needs; the fraction converges within about twenty terms. */
const maxTerms = 200;

/** The quantile function of the beta distribution with both parameters 0.6 (`scipy.stats.beta.ppf`), within 1e-13. */
export function betaQuantile(probability: number): number {
  if (probability <= 0) return 0;
  if (probability >= 1) return 1;
  // The distribution is symmetric, and near 0 a number has more digits than near 1.
  if (probability > 0.5) return 1 - betaQuantile(1 - probability);
  // The lower half of the interval is halved until it holds no other number.
  let low = 0;
  let high = 0.5;
  for (;;) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high || high - low < high * 1e-16) return middle;
    if (lowerShare(middle) < probability) low = middle;
    else high = middle;
  }
}

/**
 * The share of the distribution below x, for x up to 1/2.
 * Source: the continued fraction of the incomplete beta function, DLMF 8.17.22, by Lentz's algorithm.
 */
function lowerShare(x: number): number {
  const front = Math.exp(shape * Math.log(x) + shape * Math.log1p(-x) - logBeta) / shape;
  let c = 1;
  let d = 1 / (1 - (2 * shape * x) / (shape + 1));
  let fraction = d;
  for (let m = 1; m < maxTerms; m++) {
    const even = (m * (shape - m) * x) / ((shape + 2 * m - 1) * (shape + 2 * m));
    const odd = (-(shape + m) * (2 * shape + m) * x) / ((shape + 2 * m) * (shape + 2 * m + 1));
    for (const term of [even, odd]) {
      d = 1 / (1 + term * d);
      c = 1 + term / c;
      fraction *= d * c;
    }
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return front * fraction;
}
