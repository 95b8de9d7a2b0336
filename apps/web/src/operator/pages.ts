import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Pages } from './paged-list';
import { PagedList } from './paged-list';
import { whileSeen } from './while-seen';

const refreshMs = 5_000;

/** A long list, as far as it was read. */
export interface Paged<T> {
  value: readonly T[] | undefined;
  error: unknown;
  hasMore: boolean;
  more: () => Promise<void>;
  /** Reads all that is shown again. */
  refresh: () => Promise<void>;
}

/**
 * Reads a list in pages, newest first, and its beginning again every so often, as long as the tab can be seen.
 * @param open begins to read the list, in pages of `pageSize`
 * @param subject what is read; another one begins anew
 */
export function usePages<T extends { id: string }>(open: () => Pages<T>, pageSize: number, subject = ''): Paged<T> {
  const list = useMemo(() => new PagedList(open, pageSize), [subject]);
  const [, show] = useState({});
  const told = (work: Promise<void>): Promise<void> => work.then(() => show({}));
  useEffect(() => whileSeen(() => void told(list.value ? list.refresh() : list.more()), refreshMs), [list]);
  const { value, error, hasMore } = list;
  return { value, error, hasMore, more: () => told(list.more()), refresh: () => told(list.refresh(true)) };
}
