import { finetuneOf, finetunes, titleOf } from '../finetunes/finetunes';
import { choiceOf } from '../models/models';
import type { Finetune } from '../service/client';
import { IconButton } from '../ui/buttons';
import { Options } from '../ui/fields';
import { Range } from '../ui/range';
import { change, draft, drawnBy, finetuneId } from './draft';

const most = 4;

const baseOf = ({ model }: Finetune): string => choiceOf(model)?.served.name ?? model;
const isOfModel = (finetune: Finetune): boolean => baseOf(finetune) === drawnBy.value?.served.name;

/** Several Fine-Tunes of one model that draw together, each with its own strength. */
export function CombinedFinetunes() {
  const used = draft.value.finetunes;
  const free = finetunes.value.filter(
    (each) => each.status === 'ready' && isOfModel(each) && !used.some(({ id }) => id === each.id),
  );
  if (finetuneId.value !== undefined || (used.length === 0 && free.length === 0)) return null;
  const add = (id: string): void => {
    const scale = finetuneOf(id)?.weights?.scale ?? 1;
    change({ finetunes: [...used, { id, scale }] });
  };
  return (
    <section class="input-card" aria-labelledby="combined-title">
      <div class="input-head">
        <h2 id="combined-title">Fine-Tunes together</h2>
      </div>
      {used.map(({ id }) => (
        <UsedFinetune key={id} id={id} />
      ))}
      {free.length > 0 && used.length < most && (
        <select
          aria-label="Add a Fine-Tune"
          value=""
          onChange={({ currentTarget }) => {
            if (currentTarget.value) add(currentTarget.value);
            currentTarget.value = '';
          }}
        >
          <Options choices={[['', 'Add a Fine-Tune …'], ...free.map((each) => [each.id, titleOf(each)] as const)]} />
        </select>
      )}
    </section>
  );
}

function UsedFinetune({ id }: { id: string }) {
  const finetune = finetuneOf(id);
  const title = finetune ? titleOf(finetune) : 'A Fine-Tune that was deleted';
  const { finetunes: used } = draft.value;
  const { scale } = used.find((each) => each.id === id)!;
  const isEmbedding = finetune?.weights?.kind === 'textual_inversion';
  return (
    <div>
      <div class="input-head">
        <span>{title}</span>
        <IconButton
          icon="close"
          label={`Take ${title} out`}
          onClick={() => change({ finetunes: used.filter((each) => each.id !== id) })}
        />
      </div>
      {finetune && !isOfModel(finetune) && (
        <p class="problem">It is made for {finetune.model}. Choose that model, or take it out.</p>
      )}
      {finetune && (
        <p class="hint">
          Called by <b>{isEmbedding ? finetune.token : `${finetune.token} ${finetune.name}`}</b> in the prompt.
        </p>
      )}
      {!isEmbedding && (
        <Range
          label={`Strength of ${title}`}
          min={0}
          max={2}
          step={0.05}
          value={scale}
          onChange={(to) => change({ finetunes: used.map((each) => (each.id === id ? { id, scale: to } : each)) })}
        />
      )}
    </div>
  );
}
