import { signal } from '@preact/signals';
import { type Listed, listedOf } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { stageIds } from '../drawings/store';
import { drawable, titleOf } from '../finetunes/finetunes';
import { pictureUrl } from '../service/reach';
import type { Collection, Style } from '../service/client';
import { client } from '../session/session';
import { Button, ConfirmButton } from '../ui/buttons';
import { SelectField } from '../ui/fields';
import { attempt, say } from '../ui/notices';
import { Loaded, usePolled } from '../ui/reading';
import { go } from '../ui/route';
import { isPublic, loadCollections } from './collections';

/** The Fine-Tune that Styles are applied to; the newest until another is chosen. */
const chosen = signal<string | undefined>();
const target = (): string | undefined =>
  drawable.value.some(({ id }) => id === chosen.value) ? chosen.value : drawable.value[0]?.id;

export function CollectionView({ collection: { id, name } }: { collection: Collection }) {
  const styles = usePolled(() => client().styles.list(id));
  return (
    <div class="resource-page">
      <header>
        <a href="#/collections">← All Collections</a>
        <h1>{name}</h1>
      </header>
      <div class="panel inline-form">
        <Target />
        <ApplyButton id={id} text="Apply all" kind="is-primary" />
        {!isPublic(id) && (
          <ConfirmButton
            label="Delete the Collection"
            question="Delete it with its Styles?"
            onConfirm={() => void attempt(() => removeCollection(id))}
          />
        )}
      </div>
      <h2>Styles</h2>
      <Loaded of={styles}>
        {(all) =>
          all.length === 0 ? (
            <p class="empty">This Collection has no Styles yet.</p>
          ) : (
            <ul class="covers">
              {all.map((style) => (
                <StyleCard key={style.id} collectionId={id} style={style} onDeleted={styles.refresh} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </div>
  );
}

function Target() {
  if (drawable.value.length === 0)
    return (
      <p class="hint">
        Make a Fine-Tune with weights first: its object is put into the scenes. <a href="#/fine-tunes">Fine-Tunes</a>
      </p>
    );
  return (
    <SelectField
      id="target"
      label="Fine-Tune"
      choices={drawable.value.map((finetune) => [finetune.id, titleOf(finetune)])}
      value={target()}
      onChange={(event) => (chosen.value = event.currentTarget.value)}
    />
  );
}

function ApplyButton({ id, text, ...rest }: { id: string; text: string; kind: string; 'aria-label'?: string }) {
  const finetuneId = target();
  const apply = (): void => void (finetuneId !== undefined && attempt(() => applyStyles(finetuneId, id)));
  return (
    <Button {...rest} disabled={finetuneId === undefined} onClick={apply}>
      {text}
    </Button>
  );
}

function StyleCard({ collectionId, style, onDeleted }: { collectionId: string; style: Style; onDeleted: () => void }) {
  const remove = async (): Promise<void> => {
    await client().styles.delete(collectionId, style.id);
    say('The Style was deleted.');
    onDeleted();
  };
  return (
    <li class="cover">
      <Thumbnail url={style.thumbnail} />
      <span>{style.name}</span>
      <div class="actions">
        <ApplyButton id={style.id} text="Apply" kind="is-quiet" aria-label={`Apply ${style.name}`} />
        {!isPublic(collectionId) && (
          <ConfirmButton
            label={`Delete ${style.name}`}
            question="Delete it for good?"
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
  say('The Collection was deleted.');
}

/**
 * Applies a Style, or all Styles of a Collection, to a Fine-Tune, and shows the pictures as they form.
 * @throws DarkroomError
 */
async function applyStyles(finetuneId: string, id: string): Promise<void> {
  const made = await client().finetunes.applyStyles(finetuneId, [{ id }]);
  say(made.length === 1 ? 'One picture is being drawn.' : `${made.length} pictures are being drawn.`);
  stageIds.value = made.map((prompt) => prompt.id);
  go('');
  showNew(await amongNewest(finetuneId, new Set(made.map((prompt) => prompt.id))));
}

/** What the list tells of Prompts that were just made. */
async function amongNewest(finetune: string, ids: ReadonlySet<string>): Promise<Listed[]> {
  const found: Listed[] = [];
  for await (const page of client().drawings.pages({ finetune })) {
    const ours = page.filter(({ id }) => ids.has(id));
    found.push(...ours.map(listedOf));
    // Pages after one that has none are older only.
    if (found.length === ids.size || (found.length > 0 && ours.length === 0)) break;
  }
  return found;
}

/** Decorative: the name stands beside it. */
export function Thumbnail({ url }: { url: string | null }) {
  return (
    <span class="thumbnail">
      {url === null ? <span class="hint">No picture yet</span> : <img src={pictureUrl(url)} alt="" loading="lazy" />}
    </span>
  );
}
