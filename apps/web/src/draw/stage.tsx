import { type Drawing, frameStyle, isOpen, type Listed } from '../drawings/drawing';
import { shown } from '../drawings/feed';
import { drawings, stageIds } from '../drawings/store';
import { useWhole } from '../drawings/use-whole';
import { cancel, varyAndShow } from '../gallery/actions';
import { DrawingFrame, ProgressLine } from '../gallery/drawing-frame';
import { openViewer } from '../gallery/viewer-state';
import { Button, Download } from '../ui/buttons';

/** The drawing that is shown large: this tab's last, else the newest of all. */
function staged(): Listed[] {
  const own = stageIds.value.flatMap((id) => drawings.value.get(id) ?? []);
  return own.length > 0 ? own : shown.value.filter(({ status }) => status === 'succeeded').slice(0, 1);
}

export function Stage() {
  const found = staged();
  const [first] = found;
  return (
    <section class="stage" aria-label="Newest picture">
      {first ? (
        <div class={`sheets ${found.length + first.num_generations > 2 ? 'has-several' : ''}`}>
          {found.map((drawing) => (
            <Sheet key={drawing.id} drawing={drawing} />
          ))}
        </div>
      ) : (
        <div class="stage-empty">
          <span class="lamp is-large" aria-hidden="true" />
          <p>Your picture develops here.</p>
          <p class="hint">Write a prompt, or take one of the ideas, and press Draw.</p>
        </div>
      )}
    </section>
  );
}

function Sheet({ drawing: listed }: { drawing: Listed }) {
  const drawing = useWhole(listed.id);
  return drawing ? <WholeSheet drawing={drawing} /> : null;
}

function WholeSheet({ drawing }: { drawing: Drawing }) {
  const { images } = drawing;
  return (
    <figure class="sheet">
      <div class="sheet-frames">
        {images.length > 0 ? (
          images.map((url, index) => (
            <button
              key={url}
              type="button"
              class="frame-button"
              style={frameStyle(drawing)}
              aria-label={images.length > 1 ? `Picture ${index + 1} of ${images.length}` : 'Open the picture'}
              onClick={() => openViewer(drawing.id, index)}
            >
              <DrawingFrame drawing={drawing} index={index} isLarge />
            </button>
          ))
        ) : (
          <div class="frame-button" style={frameStyle(drawing)}>
            <DrawingFrame drawing={drawing} index={0} isLarge />
          </div>
        )}
      </div>
      <figcaption>
        <span class="caption">{drawing.prompt}</span>
        <ProgressLine drawing={drawing} />
        <Below drawing={drawing} />
      </figcaption>
    </figure>
  );
}

/** Takes as much room while the picture is drawn as afterwards. */
function Below({ drawing }: { drawing: Drawing }) {
  if (isOpen(drawing))
    return (
      <Button kind="is-quiet" onClick={() => cancel(drawing)}>
        Cancel
      </Button>
    );
  const [url] = drawing.images;
  return (
    <>
      <span class="hint">{`Seed ${drawing.seed}, ${drawing.steps} steps`}</span>
      <span class="sheet-actions">
        <Button kind="is-quiet" icon="vary" title="Draw it again with a new seed" onClick={() => varyAndShow(drawing)}>
          Vary
        </Button>
        {url && <Download url={url} kind="is-quiet" />}
      </span>
    </>
  );
}
