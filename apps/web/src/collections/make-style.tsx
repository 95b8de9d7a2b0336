import { useEffect, useState } from 'preact/hooks';
import type { Drawing } from '../drawings/drawing';
import { lengths } from '../drawings/service-rules';
import { client } from '../session/session';
import { Options, submitting, textIn } from '../ui/fields';
import { Button } from '../ui/buttons';
import { attempt, say } from '../ui/notices';
import { loadCollections, ownCollections } from './collections';

/** Makes a Style of a Fine-Tune's picture, in a Collection that is there or in a new one. */
export function MakeStyle({ drawing }: { drawing: Drawing }) {
  const [isOpen, setOpen] = useState(false);
  if (!isOpen)
    return (
      <Button icon="style" onClick={() => setOpen(true)}>
        Make a Style
      </Button>
    );
  return <MakeStyleForm drawing={drawing} onDone={() => setOpen(false)} />;
}

async function make(drawing: Drawing, form: HTMLFormElement): Promise<void> {
  const text = (name: string): string => textIn(form, name);
  const styles = [{ id: drawing.id, name: text('style') }];
  if (text('collection') === '') await client().collections.create({ name: text('name'), styles });
  else await client().styles.create(text('collection'), styles);
  await loadCollections();
  say('Added to the Collection.');
}

function MakeStyleForm({ drawing, onDone }: { drawing: Drawing; onDone: () => void }) {
  return (
    <form
      class="make-style"
      onSubmit={submitting(async (form) => {
        await make(drawing, form);
        onDone();
      })}
    >
      <label for="style-name">Make a Style</label>
      <input
        id="style-name"
        name="style"
        required
        maxLength={lengths.name}
        autocomplete="off"
        autoFocus
        placeholder="Name"
      />
      <ChooseCollection />
      <div class="actions">
        <button class="button is-primary">Create</button>
        <Button kind="is-quiet" onClick={onDone}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

function ChooseCollection() {
  const [collection, setCollection] = useState('');
  useEffect(() => void attempt(loadCollections), []);
  return (
    <>
      <label for="style-collection">Collections</label>
      <select
        id="style-collection"
        name="collection"
        value={collection}
        onChange={(event) => setCollection(event.currentTarget.value)}
      >
        <Options
          choices={[['', 'New Collection'], ...ownCollections.value.map(({ id, name }) => [id, name] as const)]}
        />
      </select>
      {collection === '' && (
        <input
          name="name"
          required
          maxLength={lengths.name}
          autocomplete="off"
          aria-label="New Collection"
          placeholder="Name"
        />
      )}
    </>
  );
}
