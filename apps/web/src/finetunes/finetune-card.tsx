import { change } from '../draw/draft';
import { restart } from '../drawings/feed';
import { tellOtherTabs } from '../drawings/store';
import type { Finetune } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { ConfirmButton } from '../ui/confirm-button';
import { attempt, say } from '../ui/notices';
import { go } from '../ui/route';
import { sizeOf } from '../ui/size';
import { loadFinetunes, titleOf } from './finetunes';
import { WeightsDrop } from './weights-drop';

export function FinetuneCard({ finetune }: { finetune: Finetune }) {
  const { id, name, token, model, status, weights, note, error_message: error } = finetune;
  const draw = (): void => {
    change({ finetuneId: id });
    go('');
  };
  return (
    <li class="card panel">
      <div class="card-head">
        <h2>{titleOf(finetune)}</h2>
        <span class={`status is-${status}`}>{texts.finetunes.status[status]}</span>
      </div>
      <p class="hint">
        {texts.finetunes.name}: <b>{name}</b> · {texts.finetunes.token} <b>{token}</b> · {model}
      </p>
      {weights && <p class="hint">{texts.finetunes.kind(weights.kind, sizeOf(weights.bytes ?? 0))}</p>}
      {weights?.kind === 'lora' && weights.scale !== null && <ScaleField id={id} scale={weights.scale} />}
      {(error ?? note) && <p class={error ? 'problem' : 'hint'}>{error ?? note}</p>}
      <WeightsDrop finetune={finetune} />
      <div class="actions">
        <button type="button" class="button" onClick={draw}>
          {texts.finetunes.draw}
        </button>
        <ConfirmButton
          label={texts.finetunes.delete}
          question={texts.finetunes.confirmDelete}
          onConfirm={() => void attempt(() => remove(id))}
        />
      </div>
    </li>
  );
}

async function remove(id: string): Promise<void> {
  await client().finetunes.delete(id);
  await loadFinetunes();
  // Its pictures are gone too.
  void restart();
  tellOtherTabs();
  say(texts.finetunes.deleted);
}

function ScaleField({ id, scale }: { id: string; scale: number }) {
  const save = (value: number): void =>
    void attempt(async () => {
      await client().finetunes.update(id, { scale: value });
      await loadFinetunes();
      say(texts.finetunes.scaleSaved);
    });
  return (
    <div class="slider">
      <label for={`scale-${id}`}>{texts.finetunes.scale}</label>
      <output for={`scale-${id}`}>
        <b>{scale}</b>
      </output>
      <input
        id={`scale-${id}`}
        type="range"
        min={0}
        max={2}
        step={0.05}
        value={scale}
        onChange={(event) => save(Number(event.currentTarget.value))}
      />
    </div>
  );
}
