import { useEffect, useState } from 'preact/hooks';
import type { Drawing } from '../drawings/drawing';
import { lengths } from '../drawings/service-rules';
import { client } from '../session/session';
import { texts } from '../texts';
import { textIn } from '../ui/form-text';
import { Icon } from '../ui/icons';
import { attempt, say } from '../ui/notices';
import { submitting } from '../ui/submitting';
import { loadCollections, ownCollections } from './collections';

/** Makes a Style of a Fine-Tune's picture, in a Collection that is there or in a new one. */
export function MakeStyle({ drawing }: { drawing: Drawing }) {
  const [isOpen, setOpen] = useState(false);
  if (!isOpen)
    return (
      <button type="button" class="button" onClick={() => setOpen(true)}>
        <Icon name="style" /> {texts.viewer.makeStyle}
      </button>
    );
  return <MakeStyleForm drawing={drawing} onDone={() => setOpen(false)} />;
}

async function make(drawing: Drawing, form: HTMLFormElement): Promise<void> {
  const text = (name: string): string => textIn(form, name);
  const styles = [{ id: drawing.id, name: text('style') }];
  if (text('collection') === '') await client().collections.create({ name: text('name'), styles });
  else await client().styles.create(text('collection'), styles);
  await loadCollections();
  say(texts.collections.added);
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
      <label for="style-name">{texts.viewer.makeStyle}</label>
      <input
        id="style-name"
        name="style"
        required
        maxLength={lengths.name}
        autocomplete="off"
        autoFocus
        placeholder={texts.collections.name}
      />
      <ChooseCollection />
      <div class="actions">
        <button class="button is-primary">{texts.collections.create}</button>
        <button type="button" class="button is-quiet" onClick={onDone}>
          {texts.collections.cancel}
        </button>
      </div>
    </form>
  );
}

function ChooseCollection() {
  const [collection, setCollection] = useState('');
  useEffect(() => void attempt(loadCollections), []);
  return (
    <>
      <label for="style-collection">{texts.collections.title}</label>
      <select
        id="style-collection"
        name="collection"
        value={collection}
        onChange={(event) => setCollection(event.currentTarget.value)}
      >
        <option value="">{texts.collections.new}</option>
        {ownCollections.value.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {collection === '' && (
        <input
          name="name"
          required
          maxLength={lengths.name}
          autocomplete="off"
          aria-label={texts.collections.new}
          placeholder={texts.collections.name}
        />
      )}
    </>
  );
}
