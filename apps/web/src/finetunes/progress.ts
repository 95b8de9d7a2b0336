/** How far a training is, as its events have told since this page follows it. */
export interface TrainingProgress {
  step: number;
  total: number;
  /** Trainings and pictures that come before it. */
  position?: number;
  /** Of each step that was told. */
  losses: readonly { step: number; loss: number }[];
  /** Pictures that it has drawn meanwhile, as `data:` URLs. */
  samples: readonly { step: number; url: string }[];
  /** When steps were done, in milliseconds; the last few. */
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

/** Progress that is known after another step. A training that goes on from a checkpoint does some of its steps again. */
export function withStep(known: TrainingProgress | undefined, told: Step, at: number): TrainingProgress {
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

/** Milliseconds that are left at the pace of the last steps; undefined until that is known. */
export function timeLeft({ step, total, marks }: TrainingProgress): number | undefined {
  const [first] = marks;
  const last = marks.at(-1);
  if (!first || !last || last.step === first.step) return undefined;
  return ((last.at - first.at) / (last.step - first.step)) * (total - step);
}

/** Losses jump from step to step; each here is the mean of it and of those before it, which count less and less. */
export function smoothed(losses: TrainingProgress['losses']): { step: number; loss: number }[] {
  const weight = 0.9;
  let [mean, share] = [0, 0];
  return losses.map(({ step, loss }) => {
    mean = weight * mean + (1 - weight) * loss;
    share = weight * share + (1 - weight);
    return { step, loss: mean / share };
  });
}
