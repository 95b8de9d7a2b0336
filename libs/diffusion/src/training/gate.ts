/** Figures that a training is judged by. */
export interface GateFigures {
  /** Loss of the picture kept back, before the first step and now; of the first picture if none was kept back. */
  lossAtStart: number;
  loss: number;
  /**
   * Difference of what base and adapter predict for other words, as a share of what the base predicts; missing without
   * prior pictures.
   */
  drift?: number;
}

export interface GateResult extends GateFigures {
  passed: boolean;
  /** Why it was not passed, in one sentence. */
  reason?: string;
}

/** Largest drift: beyond it, pictures of other words are others than before. */
const mostDrift = 0.5;

/** Whether something was learnt, and nothing forgotten. */
export function judge(figures: GateFigures, most = mostDrift): GateResult {
  const { lossAtStart, loss, drift = 0 } = figures;
  const failed = (reason: string): GateResult => ({ ...figures, passed: false, reason });
  const shown = (value: number): string => value.toPrecision(3);
  if (!Number.isFinite(loss) || !Number.isFinite(drift)) return failed('The loss is no longer a number.');
  if (loss >= lossAtStart)
    return failed(`The loss on a picture kept back is ${shown(loss)}, and was ${shown(lossAtStart)} before.`);
  if (drift > most)
    return failed(
      `What the base model draws for other words changed by ${shown(drift)} of it; at most ${shown(most)} is accepted.`,
    );
  return { ...figures, passed: true };
}

/** Length of the difference of some predictions, as a share of the base's. */
export function driftOf(base: readonly Float32Array[], now: readonly Float32Array[]): number {
  let [difference, length] = [0, 0];
  for (const [i, values] of base.entries())
    for (const [k, value] of values.entries()) {
      difference += (now[i][k] - value) ** 2;
      length += value ** 2;
    }
  return Math.sqrt(difference / length);
}
