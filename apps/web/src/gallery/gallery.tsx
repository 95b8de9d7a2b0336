import { useEffect, useRef } from 'preact/hooks';
import type { Status } from '../drawings/drawing';
import { filter, isAtEnd, isLoading, loadError, loadMore, restart, shown } from '../drawings/feed';
import { texts } from '../texts';
import { explain } from '../ui/notices';
import { moveFocus } from './move-focus';
import { Tile } from './tile';
import { compareWith } from './viewer-state';

const statuses: readonly Status[] = ['succeeded', 'processing', 'queued', 'failed', 'canceled'];

export function Gallery() {
  const list = useRef<HTMLUListElement>(null);
  return (
    <section class="gallery" aria-labelledby="gallery-title">
      <div class="gallery-head">
        <h2 id="gallery-title">{texts.gallery.title}</h2>
        <Filter />
      </div>
      {compareWith.value && (
        <p class="choose" role="status">
          {texts.gallery.choose}{' '}
          <button type="button" class="link" onClick={() => (compareWith.value = undefined)}>
            {texts.gallery.stopCompare}
          </button>
        </p>
      )}
      <p class="visually-hidden" id="gallery-keys">
        {texts.gallery.keys}
      </p>
      <ul class="tiles" ref={list} onKeyDown={(event) => moveFocus(event, list.current)}>
        {shown.value.map((drawing) => (
          <Tile key={drawing.id} drawing={drawing} />
        ))}
      </ul>
      <GalleryEnd />
    </section>
  );
}

function Filter() {
  return (
    <label class="filter">
      <span>{texts.gallery.filter}</span>
      <select
        value={filter.value ?? ''}
        onChange={(event) => void restart((event.currentTarget.value || undefined) as Status | undefined)}
      >
        <option value="">{texts.gallery.all}</option>
        {statuses.map((status) => (
          <option key={status} value={status}>
            {texts.status[status]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Loads the next page when it comes into view, and says what there is to say below the last picture. */
function GalleryEnd() {
  const end = useRef<HTMLDivElement>(null);
  const count = shown.value.length;
  useEffect(() => {
    if (!end.current || loadError.value) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) void loadMore();
      },
      { rootMargin: '600px' },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [count, isLoading.value, loadError.value]);
  if (loadError.value)
    return (
      <div class="gallery-end" role="alert">
        <p>
          {texts.gallery.failed} {explain(loadError.value)}
        </p>
        <button type="button" class="button is-quiet" onClick={() => void loadMore()}>
          {texts.gallery.again}
        </button>
      </div>
    );
  return (
    <div class="gallery-end" ref={end}>
      <EndText count={count} />
    </div>
  );
}

function EndText({ count }: { count: number }) {
  if (isLoading.value) return <p role="status">{texts.gallery.loading}</p>;
  if (!isAtEnd.value)
    return (
      <button type="button" class="button is-quiet" onClick={() => void loadMore()}>
        {texts.gallery.more}
      </button>
    );
  if (count > 0) return <p>{texts.gallery.end}</p>;
  return <p>{filter.value === undefined ? texts.gallery.empty : texts.gallery.emptyFilter}</p>;
}
