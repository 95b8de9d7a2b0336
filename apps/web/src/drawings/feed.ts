import { batch, computed, signal } from '@preact/signals';
import { loadFinetunes } from '../finetunes/finetunes';
import { client, session, sessionSignal } from '../session/session';
import { type Listed, listedOf, type Status } from './drawing';
import { drawings, forget, onOtherTabs, put, tellOtherTabs } from './store';

const refreshMs = 5_000;
/** Every sixth refresh reads the Fine-Tunes as well. */
const deepEvery = 6;

export const filter = signal<Status | undefined>();
/** Ids that the list has given so far. */
const listed = sessionSignal<ReadonlySet<string>>(() => new Set());
/** An answer that was on its way must not bring back what this tab deleted. */
const deleted = sessionSignal<ReadonlySet<string>>(() => new Set());
export const isLoading = signal(false);
export const isAtEnd = signal(false);
export const loadError = signal<unknown>();
/** Of one page. */
const pageSize = 24;
let pages: AsyncGenerator<Listed[], void, undefined> | undefined;
let generation = 0;

/** Newest first. */
export const shown = computed<Listed[]>(() => {
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
  pages = undefined;
  void loadFinetunes().catch(() => undefined);
  await loadMore();
}

/** The list of all from its beginning. */
async function* open(): AsyncGenerator<Listed[], void, undefined> {
  const status = filter.value;
  const query = { limit: pageSize, ...(status !== undefined && { status }) };
  for await (const page of client().drawings.pages(query)) yield page.map(listedOf);
}

/** Reads on, to something new or to the end. */
export async function loadMore(): Promise<void> {
  if (isLoading.value || isAtEnd.value || !session.value) return;
  const mine = generation;
  isLoading.value = true;
  try {
    for (let hasNews = false; !hasNews && !isAtEnd.value;) {
      const { value: page } = await (pages ??= open()).next();
      if (mine !== generation) return;
      hasNews = page?.some(({ id }) => !listed.value.has(id)) ?? false;
      batch(() => {
        show(page ?? []);
        isAtEnd.value = (page?.length ?? 0) < pageSize;
        loadError.value = undefined;
      });
    }
  } catch (error) {
    if (mine !== generation) return;
    // A generator that has thrown is finished. The next starts at the beginning, even if the cursor was deleted.
    pages = undefined;
    loadError.value = error;
  } finally {
    if (mine === generation) isLoading.value = false;
  }
}

/** Shows drawings at once, for example new ones. */
export function show(found: readonly Listed[]): void {
  const there = found.filter(({ id }) => !deleted.value.has(id));
  batch(() => {
    put(...there);
    listed.value = new Set([...listed.value, ...there.map(({ id }) => id)]);
  });
}

/** After something was made in this tab. */
export function showNew(found: readonly Listed[]): void {
  show(found);
  tellOtherTabs();
}

/** After something was deleted in this tab. */
export function drop(id: string): void {
  deleted.value = new Set(deleted.value).add(id);
  forget(id);
  tellOtherTabs();
}

/**
 * Reads the newest again: other tabs and other programs draw with the same key.
 * @param isDeep also the Fine-Tunes
 */
export async function refresh(isDeep: boolean): Promise<void> {
  if (!session.value) return;
  const mine = generation;
  if (isDeep) await loadFinetunes();
  const before = listed.value;
  const newest = (await open().next()).value ?? [];
  if (mine !== generation) return;
  dropMissing(newest, before);
  show(newest);
}

/**
 * Removes what the newest page would show if it still existed.
 * @param before ids that were known when the page was requested
 */
function dropMissing(newest: readonly Listed[], before: ReadonlySet<string>): void {
  const found = new Set(newest.map(({ id }) => id));
  const since = newest.length < pageSize ? '' : newest[newest.length - 1].created_at;
  const gone = shown.value.filter(({ id, created_at }) => created_at > since && before.has(id) && !found.has(id));
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
