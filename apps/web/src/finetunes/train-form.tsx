import { lengths } from '../drawings/service-rules';
import { trainingChoices } from '../models/models';
import { pictureTypes } from '../pictures/sent-picture';
import { client } from '../session/session';
import { IconButton } from '../ui/buttons';
import { DropBox } from '../ui/drop';
import { SelectField, submitting, TextField, textIn } from '../ui/fields';
import { say } from '../ui/notices';
import { loadFinetunes } from './finetunes';
import { type Photo, photoBounds, usePhotos } from './training-photos';

/** Photos, a name and a button: the service learns what the photos show. */
export function TrainForm() {
  const { photos, add, remove, clear } = usePhotos();
  const sent = photos.flatMap((photo) => photo.sent ?? []);
  const isSending = photos.some((photo) => !photo.sent && photo.problem === undefined);
  const train = async (form: HTMLFormElement): Promise<void> => {
    await client().finetunes.create({
      name: textIn(form, 'name'),
      ...(textIn(form, 'model') !== '' && { model: textIn(form, 'model') }),
      images_url: sent.map(({ url }) => url),
    });
    form.reset();
    clear();
    await loadFinetunes();
    say('The training waits for its turn.');
  };
  return (
    <form class="train-form panel" aria-labelledby="train-title" onSubmit={submitting(train)}>
      <h2 id="train-title">Train it from photos</h2>
      <DropBox
        what="photos of one object"
        label="Photos to train from"
        accept={pictureTypes}
        isMany
        onFiles={add}
        problem={photos.length === photoBounds.max ? 'These are as many photos as a training takes.' : ''}
      />
      <Photos photos={photos} remove={remove} />
      <div class="inline-form">
        <TrainFields />
        <button class="button is-primary" disabled={sent.length < photoBounds.min || isSending}>
          Train
        </button>
      </div>
      <p class="hint" role="status">
        {statusOf(sent.length, isSending)}
      </p>
    </form>
  );
}

function TrainFields() {
  return (
    <>
      <TextField
        id="train-name"
        label="What it is"
        hint="The word that prompts will call it by, such as “robot”."
        name="name"
        required
        maxLength={lengths.name}
      />
      <SelectField id="train-model" label="Model that learns it" name="model" choices={trainingChoices.value} />
    </>
  );
}

function Photos({ photos, remove }: { photos: readonly Photo[]; remove: (id: number) => void }) {
  if (photos.length === 0) return null;
  return (
    <>
      <p class="hint">The middle of each photo is used, as it is shown here.</p>
      <ul class="photos" aria-label="Photos">
        {photos.map((photo) => (
          <PhotoTile key={photo.id} photo={photo} onRemove={() => remove(photo.id)} />
        ))}
      </ul>
    </>
  );
}

function statusOf(count: number, isSending: boolean): string {
  const photos = count === 1 ? '1 photo is' : `${count} photos are`;
  if (isSending) return `${photos} there. More are being sent …`;
  const missing = photoBounds.min - count;
  return missing > 0 ? `At least ${photoBounds.min} photos are needed; ${photos} there.` : `${photos} there.`;
}

function PhotoTile({ photo: { name, shownUrl, sent, problem }, onRemove }: { photo: Photo; onRemove: () => void }) {
  return (
    <li class={sent ? 'is-sent' : ''}>
      <span class="thumbnail">
        <img src={shownUrl} alt={name} />
      </span>
      <IconButton icon="close" label={`Leave ${name} out`} onClick={onRemove} />
      {problem !== undefined ? <p class="problem">{problem}</p> : !sent && <p class="hint">Sending …</p>}
    </li>
  );
}
