import { useState } from 'preact/hooks';
import { shown } from '../drawings/feed';
import { lengths } from '../drawings/service-rules';
import { client } from '../session/session';
import { texts } from '../texts';
import { textIn } from '../ui/form-text';
import { go } from '../ui/route';
import { submitting } from '../ui/submitting';
import { loadCollections } from './collections';

/** Pictures to choose from. */
const maxPictures = 24;

/** Makes a Collection from pictures of Fine-Tunes. */
export function NewCollection() {
  const [picked, setPicked] = useState<readonly string[]>([]);
  const toggle = (id: string): void =>
    setPicked(picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id]);
  const create = async (form: HTMLFormElement): Promise<void> => {
    const name = textIn(form, 'name');
    const styles = picked.map((id, index) => ({ id, name: texts.collections.styleName(index + 1) }));
    const { id } = await client().collections.create({ name, styles });
    await loadCollections();
    go(`collections/${id}`);
  };
  return (
    <form class="panel new-collection" aria-label={texts.collections.new} onSubmit={submitting(create)}>
      <div class="inline-form">
        <div>
          <label for="collection-name">{texts.collections.new}</label>
          <input
            id="collection-name"
            name="name"
            required
            maxLength={lengths.name}
            autocomplete="off"
            placeholder={texts.collections.name}
          />
        </div>
        <button class="button is-primary">{texts.collections.create}</button>
      </div>
      <Picks picked={picked} onToggle={toggle} />
    </form>
  );
}

function Picks({ picked, onToggle }: { picked: readonly string[]; onToggle: (id: string) => void }) {
  const pictures = shown.value.filter(({ finetuneId, images }) => finetuneId !== undefined && images.length > 0);
  if (pictures.length === 0) return <p class="hint">{texts.collections.noPictures}</p>;
  return (
    <fieldset class="picks">
      <legend>{texts.collections.pick}</legend>
      {pictures.slice(0, maxPictures).map(({ id, prompt, images }) => (
        <label key={id}>
          <input type="checkbox" class="visually-hidden" checked={picked.includes(id)} onChange={() => onToggle(id)} />
          <img src={images[0]} alt={prompt} loading="lazy" />
        </label>
      ))}
    </fieldset>
  );
}
