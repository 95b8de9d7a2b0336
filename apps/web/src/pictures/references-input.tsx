import { change, draft, looksAtPictures } from '../draw/draft';
import { IconButton } from '../ui/buttons';
import { DropBox, Uploading } from '../ui/drop';
import { say } from '../ui/notices';
import { pictureTypes, type SentPicture, type Upload, type UploadState } from './sent-picture';

const most = 4;

/** Adds a sent picture to those that are looked at. */
export function lookAt({ size: _size, ...picture }: Upload): void {
  change({ references: [...draft.value.references, picture] });
}

/** The files that there is room for, of which no other is sent. */
export function roomFor(files: readonly File[]): File[] {
  const room = files.slice(0, most - draft.value.references.length);
  if (room.length < files.length) say(`A model looks at ${most} pictures at most: the others were left out.`, true);
  return room;
}

/** Pictures that the model looks at, where it can. */
export function ReferencesInput({ upload: { part, problem, send } }: { upload: UploadState }) {
  const { references, mask } = draft.value;
  if (!looksAtPictures.value) return null;
  return (
    <section class="input-card" aria-labelledby="references-title">
      <div class="input-head">
        <h2 id="references-title">Look at pictures</h2>
      </div>
      {mask && <p class="hint">Not while a part of a picture is repainted.</p>}
      {references.length > 0 && (
        <ol class="references">
          {references.map((picture, index) => (
            <Reference key={`${index} ${picture.url}`} picture={picture} index={index} />
          ))}
        </ol>
      )}
      {references.length < most && (
        <DropBox
          what="pictures"
          label="Pictures to look at"
          accept={pictureTypes}
          isMany
          onFiles={(files) => send(...roomFor(files))}
          busy={part !== undefined && <Uploading part={part} then="Reading the picture …" />}
          problem={problem}
        />
      )}
    </section>
  );
}

function Reference({ picture: { shownUrl }, index }: { picture: SentPicture; index: number }) {
  const remove = (): void => change({ references: draft.value.references.filter((_, at) => at !== index) });
  const name = `Picture ${index + 1}`;
  return (
    <li>
      {shownUrl ? (
        <img src={shownUrl} alt={`${name} to look at`} />
      ) : (
        <p class="hint">{name} is from elsewhere, and not shown here.</p>
      )}
      <IconButton icon="close" label={`Look at picture ${index + 1} no more`} onClick={remove} />
    </li>
  );
}
