import { batch, computed, signal } from '@preact/signals';
import { finetunes, loadFinetunes } from '../finetunes/finetunes';
import { session, sessionSignal } from '../session/session';
import type { Drawing, Status } from './drawing';
import { pageSize, Source } from './source';
import { drawings, forget, onOtherTabs, put, tellOtherTabs } from './store';

/** A browser opens only a few connections to a host. */
const maxReads = 3;
const refreshMs = 5_000;
/** Every sixth refresh reads the lists of all Fine-Tunes as well. */
const deepEvery = 6;

export const filter = signal<Status | undefined>();
/** Ids that the lists have given so far. */
const listed = sessionSignal<ReadonlySet<string>>(() => new Set());
/** An answer that was on its way must not bring back what this tab deleted. */
const deleted = sessionSignal<ReadonlySet<string>>(() => new Set());
export const isLoading = signal(false);
export const isAtEnd = signal(false);
export const loadError = signal<unknown>();
let sources: Source[] = [];
let generation = 0;

/** Newest first. */
export const shown = computed<Drawing[]>(() => {
  const status = filter.value;
  const found = [...listed.value].flatMap((id) => drawings.value.get(id) ?? []);
  return found
    .filter((drawing) => status === undefined || drawing.status === status)
    .sort((a, b) => (a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1));
});

/** Starts anew, with another filter or another key. */
export async function restart(status: Status | undefined = filter.value): Promise<void> {
  generation++;
  batch(() => {
    filter.value = status;
    listed.value = new Set();
    isAtEnd.value = false;
    isLoading.value = false;
    loadError.value = undefined;
  });
  sources = [new Source(undefined, status)];
  const mine = generation;
  // Without Fine-Tunes the Generations are still shown; the next refresh reads again.
  await loadFinetunes().catch(() => undefined);
  if (mine !== generation) return;
  addSources();
  await loadMore();
}

/** Reads the next page: the newest of what the lists have next. */
export async function loadMore(): Promise<void> {
  if (isLoading.value || isAtEnd.value || !session.value) return;
  const mine = generation;
  isLoading.value = true;
  try {
    const page: Drawing[] = [];
    while (page.length < pageSize) {
      await readAhead();
      if (mine !== generation) return;
      const [first] = sources
        .filter(({ next }) => next)
        .sort((a, b) => (a.next!.created_at < b.next!.created_at ? 1 : -1));
      const drawing = first?.take();
      if (!drawing) break;
      page.push(drawing);
    }
    batch(() => {
      show(page);
      isAtEnd.value = sources.every((source) => source.isAtEnd);
      loadError.value = undefined;
    });
  } catch (error) {
    if (mine === generation) loadError.value = error;
  } finally {
    if (mine === generation) isLoading.value = false;
  }
}

async function readAhead(): Promise<void> {
  const behind = sources.filter(({ mustRead }) => mustRead);
  for (let index = 0; index < behind.length; index += maxReads)
    await Promise.all(behind.slice(index, index + maxReads).map((source) => source.readOn()));
}

/** Shows drawings at once, for example new ones. */
export function show(found: readonly Drawing[]): void {
  const there = found.filter(({ id }) => !deleted.value.has(id));
  batch(() => {
    put(...there);
    listed.value = new Set([...listed.value, ...there.map(({ id }) => id)]);
  });
}

/** After something was made in this tab. */
export function showNew(found: readonly Drawing[]): void {
  show(found);
  addSources();
  tellOtherTabs();
}

/** After something was deleted in this tab. */
export function drop(id: string): void {
  deleted.value = new Set(deleted.value).add(id);
  forget(id);
  tellOtherTabs();
}

function addSources(): void {
  const known = new Set(sources.map(({ finetuneId }) => finetuneId));
  for (const { id } of finetunes.value) if (!known.has(id)) sources.push(new Source(id, filter.value));
}

/**
 * Reads the newest again: other tabs and other programs draw with the same key.
 * @param isDeep also those of all Fine-Tunes
 */
export async function refresh(isDeep: boolean): Promise<void> {
  if (!session.value) return;
  const mine = generation;
  if (isDeep) await loadFinetunes();
  addSources();
  for (const source of isDeep ? sources : sources.slice(0, 1)) {
    const before = listed.value;
    const newest = await source.newest();
    if (mine !== generation) return;
    dropMissing(source, newest, before);
    show(newest);
  }
}

/**
 * Removes what the newest page would show if it still existed.
 * @param before ids that were known when the page was requested
 */
function dropMissing({ finetuneId }: Source, newest: readonly Drawing[], before: ReadonlySet<string>): void {
  const found = new Set(newest.map(({ id }) => id));
  const since = newest.length < pageSize ? '' : newest[newest.length - 1].created_at;
  const gone = shown.value.filter(
    (drawing) =>
      drawing.finetuneId === finetuneId &&
      drawing.created_at > since &&
      before.has(drawing.id) &&
      !found.has(drawing.id),
  );
  const ids = gone.map(({ id }) => id);
  listed.value = new Set([...listed.value].filter((id) => !ids.includes(id)));
  // With a filter it may only have another status now.
  if (filter.value === undefined) forget(...ids);
}

/** Keeps the gallery up to date while the page is visible. */
export function keepFresh(): () => void {
  let turn = 0;
  let isReading = false;
  const again = (isDeep: boolean): void => {
    if (isReading) return;
    isReading = true;
    void refresh(isDeep)
      .catch(() => undefined)
      .finally(() => (isReading = false));
  };
  const timer = setInterval(() => document.hidden || again(++turn % deepEvery === 0), refreshMs);
  const onVisible = (): void => void (document.hidden || again(true));
  document.addEventListener('visibilitychange', onVisible);
  const stop = onOtherTabs(() => again(true));
  return () => {
    // Drops answers that are still on their way.
    generation++;
    clearInterval(timer);
    document.removeEventListener('visibilitychange', onVisible);
    stop();
  };
}
