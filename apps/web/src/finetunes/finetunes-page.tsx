import { useEffect } from 'preact/hooks';
import { change } from '../draw/draft';
import { restart } from '../drawings/feed';
import { lengths } from '../drawings/service-rules';
import { tellOtherTabs } from '../drawings/store';
import { choiceText, modelChoices } from '../models/models';
import type { Finetune } from '../service/client';
import { client } from '../session/session';
import { ConfirmButton, Button } from '../ui/buttons';
import { Card, StatusBadge } from '../ui/card';
import { SelectField, submitting, TextField, textIn } from '../ui/fields';
import { attempt, say } from '../ui/notices';
import { Range } from '../ui/range';
import { Loaded, usePolled } from '../ui/reading';
import { go } from '../ui/route';
import { sizeOf } from '../ui/units';
import { areFinetunesLoaded, finetunes, hasWeights, loadFinetunes, titleOf } from './finetunes';
import { TrainForm } from './train-form';
import { TrainingView } from './training-view';
import { followTraining, isOfTraining } from './trainings';
import { WeightsDrop } from './weights-drop';

/** Long, because reading resets a slider that is being moved. */
const refreshMs = 30_000;

export function FinetunesPage() {
  const { error } = usePolled(loadFinetunes, refreshMs);
  useEffect(() => followTraining(), []);
  return (
    <div class="resource-page">
      <header>
        <h1>Fine-Tunes</h1>
        <p class="lead">
          Teach the model an object or a look of your own: from photos, or by a LoRA or a textual inversion that was
          trained elsewhere. Then name it in a prompt.
        </p>
      </header>
      <TrainForm />
      <NewFinetune />
      <Loaded of={{ value: areFinetunesLoaded.value ? finetunes.value : undefined, error }}>
        {(all) =>
          all.length === 0 ? (
            <p class="empty">You have no Fine-Tunes yet.</p>
          ) : (
            <ul class="cards">
              {all.map((finetune) => (
                <FinetuneCard key={finetune.id} finetune={finetune} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </div>
  );
}

async function create(form: HTMLFormElement): Promise<void> {
  const text = (name: string): string => textIn(form, name);
  await client().finetunes.create({
    name: text('name'),
    ...(text('token') !== '' && { token: text('token') }),
    ...(text('title') !== '' && { title: text('title') }),
    ...(text('model') !== '' && { model: text('model') }),
    ...(text('weights_url') !== '' && { weights_url: text('weights_url') }),
  });
  form.reset();
  await loadFinetunes();
}

function NewFinetune() {
  return (
    <form class="panel inline-form" aria-label="New Fine-Tune" onSubmit={submitting(create)}>
      <TextField
        id="finetune-name"
        label="Name"
        hint="The word that prompts must contain, such as “robot”."
        name="name"
        required
        maxLength={lengths.name}
      />
      <TextField
        id="finetune-token"
        label="Token (optional)"
        hint="The word that the weights were trained with; it stands for the name when a picture is drawn. zwx unless you say."
        name="token"
        maxLength={lengths.token}
      />
      <TextField id="finetune-title" label="Title (optional)" name="title" maxLength={lengths.name} />
      <SelectField
        id="finetune-model"
        label="Trained on"
        name="model"
        choices={modelChoices.value.map((choice) => [choice.name, choiceText(choice)])}
      />
      <TextField
        id="finetune-weights"
        label="Weights from (optional)"
        hint="The address of a .safetensors file, as a hub gives it. A file of yours is dropped on the Fine-Tune once it is there."
        name="weights_url"
        type="url"
        placeholder="https://"
        maxLength={lengths.url}
      />
      <button class="button is-primary">Create</button>
    </form>
  );
}

const statusText = {
  registered: 'No weights yet',
  queued: 'Waiting',
  training: 'Training',
  ready: 'Ready',
  stale: 'The model was replaced or removed',
  failed: 'Failed',
  canceled: 'Canceled',
};

function FinetuneCard({ finetune }: { finetune: Finetune }) {
  const { id, name, token, model, status, weights, note, error_message: error } = finetune;
  const draw = (): void => {
    change({ finetuneId: id });
    go('');
  };
  return (
    <Card title={<h2>{titleOf(finetune)}</h2>} status={<StatusBadge kind={status} text={statusText[status]} />}>
      <p class="hint">
        Name: <b>{name}</b> · Called by <b>{token}</b> · {model}
      </p>
      {weights && (
        <p class="hint">
          {weights.kind === 'lora' ? 'LoRA' : 'Textual inversion'}, {sizeOf(weights.bytes ?? 0)}
          {!!weights.unmatched && `, ${weights.unmatched} tensors met no layer`}
        </p>
      )}
      {weights?.kind === 'lora' && weights.scale !== null && <ScaleField id={id} scale={weights.scale} />}
      {(error ?? note) && <p class={error ? 'problem' : 'hint'}>{error ?? note}</p>}
      {isOfTraining(finetune) ? <TrainingView finetune={finetune} /> : <WeightsDrop finetune={finetune} />}
      <div class="actions">
        <Button onClick={draw} disabled={!hasWeights(finetune)}>
          Draw with it
        </Button>
        <ConfirmButton
          label="Delete"
          question="Delete it with all of its pictures?"
          onConfirm={() => void attempt(() => remove(id))}
        />
      </div>
    </Card>
  );
}

async function remove(id: string): Promise<void> {
  await client().finetunes.delete(id);
  await loadFinetunes();
  // Its pictures are gone too.
  void restart();
  tellOtherTabs();
  say('The Fine-Tune was deleted.');
}

function ScaleField({ id, scale }: { id: string; scale: number }) {
  const save = (value: number): void =>
    void attempt(async () => {
      await client().finetunes.update(id, { scale: value });
      await loadFinetunes();
      say('The strength was changed.');
    });
  return <Range label="Strength" min={0} max={2} step={0.05} value={scale} onRelease={save} />;
}
