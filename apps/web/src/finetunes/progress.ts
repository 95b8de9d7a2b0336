/** How far a training is, by the events since this page follows it. */
export interface TrainingCourse {
  step: number;
  total: number;
  /** Trainings and pictures that come before it. */
  position?: number;
  losses: readonly { step: number; loss: number }[];
  /** Pictures drawn during the training, as `data:` URLs. */
  samples: readonly { step: number; url: string }[];
  /** When the last few steps were done, in milliseconds. */
  marks: readonly { step: number; at: number }[];
}

/** Steps over which the pace is measured: a training slows down while others draw. */
const paceSteps = 30;
const mostSamples = 12;

export interface Step {
  step: number;
  total: number;
  loss?: number;
  preview: string | null;
}

/** A training that resumes from a checkpoint repeats some steps. */
export function withStep(known: TrainingCourse | undefined, told: Step, at: number): TrainingCourse {
  const { step, total, loss, preview } = told;
  const before = <T extends { step: number }>(list: readonly T[] = []): T[] => list.filter((each) => each.step < step);
  return {
    ...{ step, total },
    losses: loss === undefined ? before(known?.losses) : [...before(known?.losses), { step, loss }],
    samples: (preview === null ? before(known?.samples) : [...before(known?.samples), { step, url: preview }]).slice(
      -mostSamples,
    ),
    marks: [...before(known?.marks), { step, at }].slice(-paceSteps),
  };
}

/** Milliseconds at the pace of the last steps; undefined until that is known. */
export function timeLeft({ step, total, marks }: TrainingCourse): number | undefined {
  const [first] = marks;
  const last = marks.at(-1);
  if (!first || !last || last.step === first.step) return undefined;
  return ((last.at - first.at) / (last.step - first.step)) * (total - step);
}

/** Losses jump from step to step; each here is an exponential moving average. */
export function smoothed(losses: TrainingCourse['losses']): { step: number; loss: number }[] {
  const weight = 0.9;
  let [mean, share] = [0, 0];
  return losses.map(({ step, loss }) => {
    mean = weight * mean + (1 - weight) * loss;
    share = weight * share + (1 - weight);
    return { step, loss: mean / share };
  });
}
