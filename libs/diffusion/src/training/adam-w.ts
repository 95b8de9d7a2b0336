/** Usual in diffusers' training scripts. */
const [beta1, beta2, epsilon, weightDecay, mostNorm] = [0.9, 0.999, 1e-8, 1e-2, 1];

/**
 * AdamW over several arrays, in place, with the norm of all gradients together cut to 1.
 * Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019), algorithm 2; `torch.optim.AdamW`.
 */
export class AdamW {
  step = 0;
  readonly firstMoments: readonly Float32Array[];
  readonly secondMoments: readonly Float32Array[];

  constructor(private readonly values: readonly Float32Array[]) {
    this.firstMoments = values.map(({ length }) => new Float32Array(length));
    this.secondMoments = values.map(({ length }) => new Float32Array(length));
  }

  update(gradients: readonly Float32Array[], rate: number): void {
    let squares = 0;
    for (const gradient of gradients) for (let i = 0; i < gradient.length; i++) squares += gradient[i] * gradient[i];
    const cut = Math.min(1, mostNorm / (Math.sqrt(squares) + 1e-6));
    this.step++;
    const factor = rate / (1 - beta1 ** this.step);
    const inverse = 1 / Math.sqrt(1 - beta2 ** this.step);
    const kept = 1 - rate * weightDecay;
    for (const [k, gradient] of gradients.entries()) {
      const [value, m, v] = [this.values[k], this.firstMoments[k], this.secondMoments[k]];
      for (let i = 0; i < value.length; i++) {
        const g = gradient[i] * cut;
        const first = beta1 * m[i] + (1 - beta1) * g;
        const second = beta2 * v[i] + (1 - beta2) * g * g;
        m[i] = first;
        v[i] = second;
        value[i] = value[i] * kept - (factor * first) / (Math.sqrt(second) * inverse + epsilon);
      }
    }
  }
}

/** The rate of a step, counted from 0: it rises in a line and falls with a cosine to a twentieth. */
export function rateOf(
  step: number,
  { learningRate, warmupSteps, steps }: { learningRate: number; warmupSteps: number; steps: number },
): number {
  const rise = warmupSteps > 0 ? Math.min(1, (step + 1) / warmupSteps) : 1;
  return learningRate * rise * (0.05 + 0.95 * 0.5 * (1 + Math.cos((Math.PI * step) / steps)));
}
