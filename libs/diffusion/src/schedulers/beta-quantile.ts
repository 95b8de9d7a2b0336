/**
 * Both parameters of the beta distribution that noise levels follow. Source: Lee et al., "Beta Sampling
 * is All You Need" (2024).
 */
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
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    fraction *= d * c;
    const odd = (-(shape + m) * (2 * shape + m) * x) / ((shape + 2 * m) * (shape + 2 * m + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return front * fraction;
}
