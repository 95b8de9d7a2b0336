import { batch } from '@preact/signals';
import { client, sessionSignal } from '../session/session';
import {
  type Drawing,
  drawingOfGeneration,
  drawingOfPrompt,
  isOpen,
  isWhole,
  type Listed,
  type Progress,
} from './drawing';

/** Everything of the key that the page has seen, by id. */
export const drawings = sessionSignal<ReadonlyMap<string, Listed>>(() => new Map());
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

/** The drawing with its record; undefined until that is read. */
export function wholeOf(id: string): Drawing | undefined {
  const drawing = drawings.value.get(id);
  return isWhole(drawing) ? drawing : undefined;
}

/** Reads the record. @throws DarkroomError */
export async function read({ id, finetuneId }: Listed): Promise<void> {
  if (finetuneId === undefined) return put(drawingOfGeneration(await client().generations.get(id)));
  const { prompts } = client();
  // The status first: a record that is read after it has the pictures of which it tells.
  const told = await prompts.status(finetuneId, id);
  put(drawingOfPrompt(await prompts.get(finetuneId, id), told, finetuneId));
}

export function put(...found: readonly Listed[]): void {
  if (found.length === 0) return;
  const next = new Map(drawings.value);
  // A terminated drawing stays so: an answer that was overtaken by an event must not undo it. Lists tell less.
  for (const drawing of found) {
    const known = next.get(drawing.id);
    if (!known || isOpen(known) || !isOpen(drawing)) next.set(drawing.id, { ...known, ...drawing });
  }
  batch(() => {
    drawings.value = next;
    const kept = [...progress.value].filter(([id]) => isOpen(next.get(id) ?? { status: 'canceled' }));
    if (kept.length !== progress.value.size) progress.value = new Map(kept);
  });
}

/** Shows a drawing as an event has told that it is now. */
export function putAsTold(drawing: Listed): void {
  drawings.value = new Map(drawings.value).set(drawing.id, drawing);
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
  const known = progress.value.get(id) ?? { step: 0, total: wholeOf(id)?.steps ?? 1 };
  progress.value = new Map(progress.value).set(id, { ...known, ...change });
  const drawing = drawings.value.get(id);
  if (drawing?.status === 'queued' && change.step !== undefined) put({ ...drawing, status: 'processing' });
}
