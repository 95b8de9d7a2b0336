const { fround } = Math;

/** Numerator and denominator of the rational approximation to log(1 + x), highest power first. */
const numerator = [0.025899791179079226, 0.3808837741388408, 1.4800006335765066, 2.112677543073053, 1, 0].map(fround);
const denominator = [
  0.005875095403124574, 0.15464763749839067, 0.9864942958518419, 2.453006071784736, 2.6126775430731093, 1,
].map(fround);

/**
 * `numpy.log` of float32 values, to the last bit, for normal numbers above zero. Its error of up to four units in the
 * last place is visible in the fractional timesteps that diffusers passes to the U-Net with Karras sigmas.
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
