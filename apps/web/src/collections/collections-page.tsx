import { useState } from 'preact/hooks';
import { shown } from '../drawings/feed';
import { DrawingFrame } from '../gallery/drawing-frame';
import { lengths } from '../drawings/service-rules';
import type { Collection } from '../service/client';
import { client } from '../session/session';
import { Part } from '../ui/card';
import { submitting, TextField, textIn } from '../ui/fields';
import { Loaded, usePolled } from '../ui/reading';
import { go, route } from '../ui/route';
import { CollectionView, Thumbnail } from './collection-view';
import { areCollectionsLoaded, collectionOf, loadCollections, ownCollections, publicCollections } from './collections';

export function CollectionsPage() {
  const { error } = usePolled(loadCollections);
  const [, id] = route.value;
  const open = id === undefined ? undefined : collectionOf(id);
  if (open) return <CollectionView key={open.id} collection={open} />;
  return (
    <div class="resource-page">
      <header>
        <h1>Collections</h1>
        <p class="lead">
          A Collection is a set of Styles. Each Style remembers the scene of a picture, and any Fine-Tune can be put
          into it.
        </p>
      </header>
      <NewCollection />
      <Loaded of={{ value: areCollectionsLoaded.value ? ownCollections.value : undefined, error }}>
        {(own) => (
          <>
            <Part id="own-collections" title="Yours">
              {own.length === 0 ? (
                <p class="empty">You have no Collections yet. Make one from pictures of a Fine-Tune.</p>
              ) : (
                <Covers collections={own} />
              )}
            </Part>
            <Part id="public-collections" title="Public">
              <Covers collections={publicCollections.value} />
            </Part>
          </>
        )}
      </Loaded>
    </div>
  );
}

function Covers({ collections }: { collections: readonly Collection[] }) {
  return (
    <ul class="covers">
      {collections.map(({ id, name, thumbnail }) => (
        <li key={id}>
          <a class="cover" href={`#/collections/${id}`}>
            <Thumbnail url={thumbnail} />
            <span>{name}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

const maxPictures = 24;

function NewCollection() {
  const [picked, setPicked] = useState<readonly string[]>([]);
  const toggle = (id: string): void =>
    setPicked(picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id]);
  const create = async (form: HTMLFormElement): Promise<void> => {
    const name = textIn(form, 'name');
    const styles = picked.map((id, index) => ({ id, name: `Style ${index + 1}` }));
    const { id } = await client().collections.create({ name, styles });
    await loadCollections();
    go(`collections/${id}`);
  };
  return (
    <form class="panel new-collection" aria-label="New Collection" onSubmit={submitting(create)}>
      <div class="inline-form">
        <TextField
          id="collection-name"
          label="New Collection"
          name="name"
          required
          maxLength={lengths.name}
          placeholder="Name"
        />
        <button class="button is-primary">Create</button>
      </div>
      <Picks picked={picked} onToggle={toggle} />
    </form>
  );
}

function Picks({ picked, onToggle }: { picked: readonly string[]; onToggle: (id: string) => void }) {
  const pictures = shown.value.filter(({ finetuneId, status }) => finetuneId !== undefined && status === 'succeeded');
  if (pictures.length === 0)
    return <p class="hint">Styles are made from pictures of a Fine-Tune, and there are none yet.</p>;
  return (
    <fieldset class="picks">
      <legend>Pictures to make Styles from</legend>
      {pictures.slice(0, maxPictures).map((drawing) => (
        <label key={drawing.id}>
          <input
            type="checkbox"
            class="visually-hidden"
            checked={picked.includes(drawing.id)}
            onChange={() => onToggle(drawing.id)}
          />
          <DrawingFrame drawing={drawing} index={0} />
        </label>
      ))}
    </fieldset>
  );
}
