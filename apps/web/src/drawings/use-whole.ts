import { useEffect } from 'preact/hooks';
import { attempt } from '../ui/notices';
import type { Drawing } from './drawing';
import { drawings, read, wholeOf } from './store';

/** A drawing with its record, which is read where only a list has told of it. */
export function useWhole(id: string | undefined): Drawing | undefined {
  const known = id === undefined ? undefined : drawings.value.get(id);
  const whole = known && wholeOf(known.id);
  const mustRead = known !== undefined && !whole;
  useEffect(() => {
    if (mustRead) void attempt(() => read(known));
  }, [id, mustRead]);
  return whole;
}
