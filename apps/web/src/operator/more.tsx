import { texts } from '../texts';
import type { Paged } from './pages';

/** Reads on in a list. */
export function More<T>({ list }: { list: Paged<T> }) {
  if (!list.hasMore) return null;
  return (
    <div>
      <button type="button" class="button is-quiet" onClick={() => void list.more()}>
        {texts.operator.more}
      </button>
    </div>
  );
}
