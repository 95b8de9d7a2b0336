import { Button } from '../ui/buttons';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isOpen, type Listed, type Status, statusText } from '../drawings/drawing';
import { filter, isAtEnd, isLoading, loadError, loadMore, restart, shown } from '../drawings/feed';
import { useWhole } from '../drawings/use-whole';
import { Dialog } from '../ui/dialog';
import { Options } from '../ui/fields';
import { explain } from '../ui/notices';
import { cancel, removeAndSay } from './actions';
import { DrawingFrame, ProgressLine } from './drawing-frame';
import { compareWith, openViewer } from './viewer-state';

const statuses: readonly Status[] = ['succeeded', 'processing', 'queued', 'failed', 'canceled'];

export function Gallery() {
  const list = useRef<HTMLUListElement>(null);
  return (
    <section class="gallery" aria-labelledby="gallery-title">
      <div class="gallery-head">
        <h2 id="gallery-title">Contact sheet</h2>
        <Filter />
      </div>
      {compareWith.value && (
        <p class="choose" role="status">
          Choose the picture to compare with.{' '}
          <button type="button" class="link" onClick={() => (compareWith.value = undefined)}>
            Do not compare
          </button>
        </p>
      )}
      <p class="visually-hidden" id="gallery-keys">
        Arrow keys move, Enter opens, Delete deletes.
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
      <span>Show</span>
      <select
        value={filter.value ?? ''}
        onChange={(event) => void restart((event.currentTarget.value || undefined) as Status | undefined)}
      >
        <Options choices={[['', 'All'], ...statuses.map((status) => [status, statusText[status]] as const)]} />
      </select>
    </label>
  );
}

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
        <p>The pictures could not be loaded. {explain(loadError.value)}</p>
        <Button kind="is-quiet" onClick={() => void loadMore()}>
          Try again
        </Button>
      </div>
    );
  return (
    <div class="gallery-end" ref={end}>
      <EndText count={count} />
    </div>
  );
}

function EndText({ count }: { count: number }) {
  if (isLoading.value) return <p role="status">Loading pictures …</p>;
  if (!isAtEnd.value)
    return (
      <Button kind="is-quiet" onClick={() => void loadMore()}>
        Show more
      </Button>
    );
  if (count > 0) return <p>That is everything.</p>;
  return <p>{filter.value === undefined ? 'Nothing here yet.' : 'No picture has this status.'}</p>;
}

function Tile({ drawing }: { drawing: Listed }) {
  const [isAsking, setAsking] = useState(false);
  const { id, prompt, num_generations, filtered, status, thumbnail } = drawing;
  const count = num_generations - filtered;
  // Older pictures have no thumbnail: they are shown themselves.
  useWhole(status === 'succeeded' && thumbnail === null ? id : undefined);
  return (
    <li class={`tile is-${status}`}>
      <button
        type="button"
        class="tile-button"
        data-tile={id}
        aria-label={`${prompt} (${statusText[status]})`}
        aria-describedby="gallery-keys"
        onClick={() => openViewer(id, 0)}
        onKeyDown={(event) => {
          if (event.key === 'Delete') setAsking(true);
        }}
      >
        <DrawingFrame drawing={drawing} index={0} />
        {status === 'succeeded' && count > 1 && (
          <span class="badge" aria-hidden="true">
            {count}
          </span>
        )}
      </button>
      {isOpen(drawing) && (
        <div class="tile-progress">
          <ProgressLine drawing={drawing} />
          <button type="button" class="link" onClick={() => cancel(drawing)}>
            Cancel
          </button>
        </div>
      )}
      {isAsking && <AskDelete drawing={drawing} onClose={() => setAsking(false)} />}
    </li>
  );
}

function AskDelete({ drawing, onClose }: { drawing: Listed; onClose: () => void }) {
  return (
    <Dialog label="Delete it for good?" className="ask" onClose={onClose}>
      <p>Delete it for good?</p>
      <div class="actions">
        <Button
          kind="is-danger"
          onClick={() => {
            onClose();
            removeAndSay(drawing);
          }}
        >
          Delete
        </Button>
        <Button kind="is-quiet" onClick={onClose}>
          Keep
        </Button>
      </div>
    </Dialog>
  );
}

/** Moves the focus between tiles by the arrow keys, Home and End; up and down by the grid's rows at its width. */
function moveFocus(event: KeyboardEvent, list: HTMLElement | null): void {
  const tiles = [...(list?.querySelectorAll<HTMLElement>('[data-tile]') ?? [])];
  const at = tiles.findIndex((tile) => tile === document.activeElement);
  if (at < 0) return;
  const columns = columnsOf(tiles);
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
    Home: -at,
    End: tiles.length - 1 - at,
  };
  const target = event.key in steps ? tiles[at + steps[event.key]] : undefined;
  if (!target) return;
  event.preventDefault();
  target.focus();
  target.scrollIntoView({ block: 'nearest' });
}

function columnsOf(tiles: readonly HTMLElement[]): number {
  const tops = tiles.map((tile) => Math.round(tile.getBoundingClientRect().top));
  const next = tops.findIndex((top) => top !== tops[0]);
  return next < 0 ? tiles.length : next;
}
