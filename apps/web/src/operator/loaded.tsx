import type { ComponentChildren } from 'preact';
import { texts } from '../texts';
import { explain } from '../ui/notices';
import type { Polled } from './polled';

interface LoadedProps<T> {
  of: Polled<T>;
  children: (value: T) => ComponentChildren;
}

/** Something that is read: that it is being read, why it could not be, and what was read last. */
export function Loaded<T>({ of: { value, error }, children }: LoadedProps<T>) {
  return (
    <>
      {value === undefined && error === undefined && <p role="status">{texts.operator.loading}</p>}
      {error !== undefined && (
        <p class="problem" role="alert">
          {texts.operator.failed(explain(error))}
        </p>
      )}
      {value !== undefined && children(value)}
    </>
  );
}
