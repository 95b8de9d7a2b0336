import { computed } from '@preact/signals';
import { shown } from '../drawings/feed';
import { drawings } from '../drawings/store';
import { sessionSignal } from '../session/session';

/** A picture of a drawing. */
export interface Shot {
  id: string;
  index: number;
}

/** The picture that is shown in full. */
export const viewed = sessionSignal<Shot | undefined>(() => undefined);
/** The first of two to compare, while the second is chosen. */
export const compareWith = sessionSignal<Shot | undefined>(() => undefined);
export const compared = sessionSignal<readonly [Shot, Shot] | undefined>(() => undefined);

/** Opens a picture, or takes it as the second to compare. */
export function openViewer(id: string, index: number): void {
  const first = compareWith.value;
  if (!first) {
    viewed.value = { id, index };
    return;
  }
  compareWith.value = undefined;
  compared.value = [first, { id, index }];
}

/** In the gallery's order; a drawing without pictures counts as one. */
const shots = computed<Shot[]>(() => {
  const inGallery = shown.value.flatMap(({ id, status, num_generations, filtered }) =>
    Array.from({ length: status === 'succeeded' ? num_generations - filtered : 1 }, (_, index) => ({ id, index })),
  );
  const open = viewed.value;
  return open && !inGallery.some(({ id }) => id === open.id) && drawings.value.has(open.id)
    ? [open, ...inGallery]
    : inGallery;
});

/** Undefined past an end. */
export function neighbour(by: number): Shot | undefined {
  const open = viewed.value;
  const at = shots.value.findIndex(({ id, index }) => id === open?.id && index === open.index);
  return at < 0 ? undefined : shots.value[at + by];
}
