import { useEffect, useState } from 'preact/hooks';
import { whileSeen } from './while-seen';

/** What was read last, and why it could not be read again. */
export interface Polled<T> {
  value?: T;
  error?: unknown;
}

/** Reads something now and every so often, one request after the other, as long as the tab can be seen. */
export function usePolled<T>(read: () => Promise<T>, intervalMs: number): Polled<T> {
  const [state, setState] = useState<Polled<T>>({});
  useEffect(() => {
    let isReading = false;
    let isOver = false;
    const tell = (next: Polled<T>): void => {
      isReading = false;
      if (!isOver) setState((before) => ({ ...before, ...next }));
    };
    const stop = whileSeen(() => {
      if (isReading) return;
      isReading = true;
      read().then(
        (value) => tell({ value, error: undefined }),
        (error: unknown) => tell({ error }),
      );
    }, intervalMs);
    return () => {
      isOver = true;
      stop();
    };
  }, []);
  return state;
}
