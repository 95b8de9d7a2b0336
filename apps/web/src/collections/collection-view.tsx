import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { finetunes, titleOf } from '../finetunes/finetunes';
import type { Collection, Style } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { ConfirmButton } from '../ui/confirm-button';
import { attempt, say } from '../ui/notices';
import { Pending, useLoad } from '../ui/pending';
import { go } from '../ui/route';
import { applyStyles } from './apply-styles';
import { isPublic, loadCollections } from './collections';
import { Thumbnail } from './thumbnail';

/** The Fine-Tune that Styles are applied to; the newest until another is chosen. */
const chosen = signal<string | undefined>();
const target = (): string | undefined =>
  finetunes.value.some(({ id }) => id === chosen.value) ? chosen.value : finetunes.value[0]?.id;

export function CollectionView({ collection: { id, name } }: { collection: Collection }) {
  const styles = useMemo(() => signal<readonly Style[] | undefined>(undefined), []);
  const load = async (): Promise<void> => void (styles.value = await client().styles.list(id));
  const pending = useLoad(load);
  return (
    <div class="resource-page">
      <header>
        <a href="#/collections">← {texts.collections.back}</a>
        <h1>{name}</h1>
      </header>
      <div class="panel inline-form">
        <Target />
        <ApplyButton id={id} text={texts.collections.apply} isPrimary />
        {!isPublic(id) && (
          <ConfirmButton
            label={texts.collections.delete}
            question={texts.collections.confirmDelete}
            onConfirm={() => void attempt(() => removeCollection(id))}
          />
        )}
      </div>
      <h2>{texts.collections.styles}</h2>
      {styles.value === undefined ? (
        <Pending of={pending} text={texts.collections.loading} />
      ) : styles.value.length === 0 ? (
        <p class="empty">{texts.collections.noStyles}</p>
      ) : (
        <ul class="covers">
          {styles.value.map((style) => (
            <StyleCard key={style.id} collectionId={id} style={style} onDeleted={() => void attempt(load)} />
          ))}
        </ul>
      )}
    </div>
  );
}

function Target() {
  if (finetunes.value.length === 0)
    return (
      <p class="hint">
        {texts.collections.needsFinetune} <a href="#/fine-tunes">{texts.finetunes.title}</a>
      </p>
    );
  return (
    <div>
      <label for="target">{texts.collections.applyTo}</label>
      <select id="target" value={target()} onChange={(event) => (chosen.value = event.currentTarget.value)}>
        {finetunes.value.map((finetune) => (
          <option key={finetune.id} value={finetune.id}>
            {titleOf(finetune)}
          </option>
        ))}
      </select>
    </div>
  );
}

function ApplyButton({
  id,
  text,
  label,
  isPrimary = false,
}: {
  id: string;
  text: string;
  label?: string;
  isPrimary?: boolean;
}) {
  const finetuneId = target();
  return (
    <button
      type="button"
      class={`button ${isPrimary ? 'is-primary' : 'is-quiet'}`}
      aria-label={label}
      disabled={finetuneId === undefined}
      onClick={() => finetuneId !== undefined && void attempt(() => applyStyles(finetuneId, id))}
    >
      {text}
    </button>
  );
}

function StyleCard({ collectionId, style, onDeleted }: { collectionId: string; style: Style; onDeleted: () => void }) {
  const remove = async (): Promise<void> => {
    await client().styles.delete(collectionId, style.id);
    say(texts.collections.styleDeleted);
    onDeleted();
  };
  return (
    <li class="cover">
      <Thumbnail url={style.thumbnail} />
      <span>{style.name}</span>
      <div class="actions">
        <ApplyButton id={style.id} text={texts.collections.applyShort} label={texts.collections.applyOne(style.name)} />
        {!isPublic(collectionId) && (
          <ConfirmButton
            label={texts.collections.deleteStyle(style.name)}
            question={texts.viewer.confirmDelete}
            onConfirm={() => void attempt(remove)}
            isSmall
          />
        )}
      </div>
    </li>
  );
}

async function removeCollection(id: string): Promise<void> {
  await client().collections.delete(id);
  await loadCollections();
  go('collections');
  say(texts.collections.deleted);
}
