import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { isReachable } from '../service/reach';
import { Button } from './buttons';
import { explain } from './notices';
import { type Pages, readPages } from './pages';

const refreshMs = 5_000;

/** What was read last, and why it could not be read again. */
interface Read<T> {
  value?: T;
  error?: unknown;
}

interface Polled<T> extends Read<T> {
  /** Reads now; an answer that is still on its way is dropped. */
  refresh: () => void;
}

/**
 * Reads something now and at intervals, one request at a time, while the tab is visible and the service answers, and at
 * once when the service is back.
 * @param subject what is read; a change reads at once
 */
export function usePolled<T>(read: () => Promise<T>, intervalMs = refreshMs, subject?: unknown): Polled<T> {
  const [state, setState] = useState<Read<T>>({});
  const [turn, setTurn] = useState(0);
  const isThere = isReachable.value;
  useEffect(() => {
    let isReading = false;
    let isOver = false;
    const tell = (next: Read<T>): void => {
      isReading = false;
      if (!isOver) setState((before) => ({ ...before, ...next }));
    };
    const tick = (): void => {
      if (isReading || document.hidden) return;
      isReading = true;
      read().then(
        (value) => tell({ value, error: undefined }),
        (error: unknown) => tell({ error }),
      );
    };
    tick();
    const timer = isThere ? setInterval(tick, intervalMs) : undefined;
    document.addEventListener('visibilitychange', tick);
    return () => {
      isOver = true;
      clearInterval(timer);
      document.removeEventListener('visibilitychange', tick);
    };
  }, [subject, turn, isThere]);
  return { ...state, refresh: () => setTurn((before) => before + 1) };
}

/** The newest first. */
interface Paged<T> extends Polled<T[]> {
  hasMore: boolean;
  more: () => void;
}

export function usePages<T>(open: () => Pages<T>, pageSize: number): Paged<T> {
  const [count, setCount] = useState(1);
  const { value, ...rest } = usePolled(() => readPages(open(), count, pageSize), refreshMs, count);
  const { rows, hasMore = false } = value ?? {};
  return { ...rest, ...(rows && { value: rows }), hasMore, more: () => setCount(count + 1) };
}

interface LoadedProps<T> {
  of: Read<T>;
  children: (value: T) => ComponentChildren;
}

/** What was read last, or that it is being read, or why it failed. */
export function Loaded<T>({ of: { value, error }, children }: LoadedProps<T>) {
  return (
    <>
      {value === undefined && error === undefined && <p role="status">Loading …</p>}
      {error !== undefined && (
        <p class="problem" role="alert">
          This could not be read: {explain(error)}
        </p>
      )}
      {value !== undefined && children(value)}
    </>
  );
}

interface ListedProps<T> {
  of: Paged<T>;
  children: (rows: readonly T[]) => ComponentChildren;
}

/** With a button that reads the next page. */
export function Listed<T>({ of: list, children }: ListedProps<T>) {
  return (
    <>
      <Loaded of={list}>{children}</Loaded>
      {list.hasMore && (
        <div>
          <Button kind="is-quiet" onClick={list.more}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}
