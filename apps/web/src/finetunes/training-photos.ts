import { useEffect, useRef, useState } from 'preact/hooks';
import { type SentPicture, uploadPicture } from '../pictures/sent-picture';
import { explain } from '../ui/notices';

/** How many photos a training takes. */
export const photoBounds = { min: 4, max: 100 };
/** Fewer than the four that the service takes of a key, because others may be sending too. */
const atATime = 2;

/** A photo to train from. */
export interface Photo {
  id: number;
  name: string;
  /** Where this page reads it. */
  shownUrl: string;
  /** Undefined until it was sent. */
  sent?: SentPicture;
  problem?: string;
}

let lastId = 0;

/** Photos are sent as soon as they are chosen. */
export function usePhotos() {
  const [photos, setPhotos] = useState<readonly Photo[]>([]);
  const waiting = useRef<{ id: number; file: File }[]>([]);
  const sending = useRef(0);
  const change = (id: number, part: Partial<Photo>): void =>
    setPhotos((before) => before.map((photo) => (photo.id === id ? { ...photo, ...part } : photo)));
  const sendNext = (): void => {
    const next = sending.current < atATime ? waiting.current.shift() : undefined;
    if (!next) return;
    sending.current++;
    uploadPicture(next.file)
      .then(
        (sent) => change(next.id, { sent }),
        (error: unknown) => change(next.id, { problem: explain(error) }),
      )
      .finally(() => {
        sending.current--;
        sendNext();
      })
      .catch(() => undefined);
    sendNext();
  };
  const add = (files: readonly File[]): void => {
    const room = photoBounds.max - photos.length;
    const added = files.slice(0, room).map((file) => ({ id: ++lastId, file }));
    setPhotos([
      ...photos,
      ...added.map(({ id, file }) => ({ id, name: file.name, shownUrl: URL.createObjectURL(file) })),
    ]);
    waiting.current.push(...added);
    sendNext();
  };
  const remove = (id: number): void => {
    waiting.current = waiting.current.filter((each) => each.id !== id);
    setPhotos((before) => before.filter((photo) => photo.id !== id));
  };
  useReleased(photos);
  return { photos, add, remove, clear: () => setPhotos([]) };
}

/** Frees the memory of photos that are no longer shown. */
function useReleased(photos: readonly Photo[]): void {
  const known = useRef(new Set<string>());
  useEffect(() => {
    const urls = new Set(photos.map(({ shownUrl }) => shownUrl));
    for (const url of known.current) if (!urls.has(url)) URL.revokeObjectURL(url);
    known.current = urls;
  }, [photos]);
  useEffect(
    () => () => {
      for (const url of known.current) URL.revokeObjectURL(url);
    },
    [],
  );
}
