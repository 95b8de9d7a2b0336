import type { Finetune } from '../service/client';
import { client } from '../session/session';
import { ConfirmButton } from '../ui/buttons';
import { attempt, say } from '../ui/notices';
import { durationOf } from '../ui/units';
import { loadFinetunes, titleOf } from './finetunes';
import { smoothed, timeLeft, type TrainingCourse } from './progress';
import { trainings } from './trainings';

/** A training's steps, loss, samples and remaining time; or that weights are being fetched. */
export function TrainingView({ finetune }: { finetune: Finetune }) {
  const known = trainings.value.get(finetune.id);
  if (!finetune.training)
    return (
      <div class="training">
        <p class="progress-text">Fetching its weights …</p>
        <CancelButton id={finetune.id} label="Cancel" said="The weights are not fetched." />
      </div>
    );
  const { step = finetune.training.step, position } = known ?? {};
  const { steps } = finetune.training;
  return (
    <div class="training">
      <progress max={steps} value={step} aria-label={`Training of ${titleOf(finetune)}`} />
      <p class="progress-text">{step > 0 ? stepText(step, steps, known) : waitingText(finetune, position)}</p>
      {known && known.losses.length > 1 && <LossLine progress={known} steps={steps} />}
      {known && known.samples.length > 0 && <Samples samples={known.samples} />}
      <CancelButton id={finetune.id} label="Cancel the training" said="The training was canceled." />
    </div>
  );
}

function CancelButton({ id, label, said }: { id: string; label: string; said: string }) {
  const cancel = async (): Promise<void> => {
    await client().finetunes.cancel(id);
    await loadFinetunes();
    say(said);
  };
  return (
    <ConfirmButton
      label={label}
      question="Cancel it? Nothing of it is kept."
      icon="close"
      answers={{ yes: 'Cancel it', no: 'Go on' }}
      onConfirm={() => void attempt(cancel)}
    />
  );
}

function waitingText({ status }: Finetune, position: number | undefined): string {
  if (status === 'training') return 'Reading the photos';
  if (position === undefined) return 'Waiting for its turn';
  return position === 0 ? 'Next in the queue' : `${position} before it in the queue`;
}

function stepText(step: number, steps: number, known: TrainingCourse | undefined): string {
  const left = known && timeLeft(known);
  return `Step ${step} of ${steps}${left === undefined ? '' : `, about ${durationOf(left)} left`}`;
}

/** The loss of each step, paler, with its mean over it. */
function LossLine({ progress: { losses }, steps }: { progress: TrainingCourse; steps: number }) {
  const mean = smoothed(losses);
  const top = Math.max(...losses.map(({ loss }) => loss));
  const [first, last] = [mean[0], mean[mean.length - 1]].map(({ loss }) => loss.toPrecision(2));
  const line = (points: TrainingCourse['losses']): string =>
    points.map(({ step, loss }) => `${(100 * step) / steps},${40 - (38 * loss) / (top || 1)}`).join(' ');
  return (
    <figure class="loss">
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`Loss from ${first} to ${last}`}>
        <polyline class="each" points={line(losses)} />
        <polyline points={line(mean)} />
      </svg>
      <figcaption class="hint">Loss {last}: lower is closer to the photos</figcaption>
    </figure>
  );
}

function Samples({ samples }: { samples: TrainingCourse['samples'] }) {
  return (
    <ul class="samples" aria-label="Samples">
      {samples.map(({ step, url }) => (
        <li key={step}>
          <img src={url} alt={`Sample after step ${step}`} />
          <span class="hint">{step}</span>
        </li>
      ))}
    </ul>
  );
}
