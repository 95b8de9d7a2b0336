import { batch } from '@preact/signals';
import { sessionSignal } from '../session/session';
import { type Drawing, isOpen, type Progress } from './drawing';

/** Everything of the key that the page has seen, by id. */
export const drawings = sessionSignal<ReadonlyMap<string, Drawing>>(() => new Map());
/** Of open drawings, by id. */
export const progress = sessionSignal<ReadonlyMap<string, Progress>>(() => new Map());
/** This tab's newest, shown large. */
export const stageIds = sessionSignal<readonly string[]>(() => []);

const channel = new BroadcastChannel('darkroom');
/** Calls back when another tab has made or deleted something. */
export function onOtherTabs(callback: () => void): () => void {
  const listener = (): void => callback();
  channel.addEventListener('message', listener);
  return () => channel.removeEventListener('message', listener);
}

export const tellOtherTabs = (): void => channel.postMessage('changed');

export function put(...found: readonly Drawing[]): void {
  if (found.length === 0) return;
  const next = new Map(drawings.value);
  // A terminated drawing stays so: an answer that was overtaken by an event must not undo it.
  for (const drawing of found) {
    const known = next.get(drawing.id);
    if (!known || isOpen(known) || !isOpen(drawing)) next.set(drawing.id, merged(drawing, known));
  }
  batch(() => {
    drawings.value = next;
    const kept = [...progress.value].filter(([id]) => isOpen(next.get(id) ?? { status: 'canceled' }));
    if (kept.length !== progress.value.size) progress.value = new Map(kept);
  });
}

/** Shows a drawing as an event has told that it is now. */
export function putAsTold(drawing: Drawing): void {
  drawings.value = new Map(drawings.value).set(drawing.id, drawing);
}

/** A list does not say whether a Prompt is being drawn; an event does. */
function merged(drawing: Drawing, known?: Drawing): Drawing {
  const isBehind = known?.status === 'processing' && drawing.status === 'queued' && drawing.finetuneId !== undefined;
  return isBehind ? { ...drawing, status: known.status } : drawing;
}

export function forget(...ids: readonly string[]): void {
  const [next, steps] = [new Map(drawings.value), new Map(progress.value)];
  for (const id of ids) {
    next.delete(id);
    steps.delete(id);
  }
  batch(() => {
    drawings.value = next;
    progress.value = steps;
    stageIds.value = stageIds.value.filter((id) => next.has(id));
  });
}

export function setProgress(id: string, change: Partial<Progress>): void {
  const known = progress.value.get(id) ?? { step: 0, total: drawings.value.get(id)?.steps ?? 1 };
  progress.value = new Map(progress.value).set(id, { ...known, ...change });
  const drawing = drawings.value.get(id);
  if (drawing?.status === 'queued' && change.step !== undefined) put({ ...drawing, status: 'processing' });
}
