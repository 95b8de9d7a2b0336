import type { Drawing } from '../drawings/drawing';
import { aspectClass, isOpen } from '../drawings/drawing';
import { drawings, stageIds } from '../drawings/store';
import { cancel } from '../gallery/actions';
import { DrawingFrame } from '../gallery/drawing-frame';
import { ProgressLine } from '../gallery/progress-line';
import { openViewer } from '../gallery/viewer-state';
import { texts } from '../texts';
import { shown } from '../drawings/feed';

/** What is shown large: what this tab drew last, or else the newest there is. */
function staged(): Drawing[] {
  const own = stageIds.value.flatMap((id) => drawings.value.get(id) ?? []);
  return own.length > 0 ? own : shown.value.filter(({ status }) => status === 'succeeded').slice(0, 1);
}

export function Stage() {
  const found = staged();
  const [first] = found;
  return (
    <section class="stage" aria-label={texts.stage.label}>
      {first ? (
        <div class={`sheets ${found.length + first.images.length > 2 ? 'has-several' : ''}`}>
          {found.map((drawing) => (
            <Sheet key={drawing.id} drawing={drawing} />
          ))}
        </div>
      ) : (
        <div class="stage-empty">
          <span class="lamp is-large" aria-hidden="true" />
          <p>{texts.stage.empty}</p>
          <p class="hint">{texts.stage.emptyHint}</p>
        </div>
      )}
    </section>
  );
}

function Sheet({ drawing }: { drawing: Drawing }) {
  const { images } = drawing;
  return (
    <figure class="sheet">
      <div class="sheet-frames">
        {images.length > 0 ? (
          images.map((url, index) => (
            <button
              key={url}
              type="button"
              class={`frame-button ${aspectClass(drawing)}`}
              aria-label={images.length > 1 ? texts.viewer.image(index + 1, images.length) : texts.stage.open}
              onClick={() => openViewer(drawing.id, index)}
            >
              <DrawingFrame drawing={drawing} index={index} isLarge />
            </button>
          ))
        ) : (
          <div class={`frame-button ${aspectClass(drawing)}`}>
            <DrawingFrame drawing={drawing} index={0} isLarge />
          </div>
        )}
      </div>
      <figcaption>
        <span class="caption">{drawing.prompt}</span>
        <ProgressLine drawing={drawing} />
        {isOpen(drawing) && (
          <button type="button" class="button is-quiet" onClick={() => cancel(drawing)}>
            {texts.progress.cancel}
          </button>
        )}
      </figcaption>
    </figure>
  );
}
