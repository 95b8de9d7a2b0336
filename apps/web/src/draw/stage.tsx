import type { Drawing } from '../drawings/drawing';
import { aspectClass, isOpen } from '../drawings/drawing';
import { shown } from '../drawings/feed';
import { drawings, stageIds } from '../drawings/store';
import { cancel, varyAndShow } from '../gallery/actions';
import { DrawingFrame } from '../gallery/drawing-frame';
import { ProgressLine } from '../gallery/progress-line';
import { openViewer } from '../gallery/viewer-state';
import { texts } from '../texts';
import { Icon } from '../ui/icons';

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
        <Below drawing={drawing} />
      </figcaption>
    </figure>
  );
}

/** What can be done with it, and how to get it again; it takes as much room while it is drawn as afterwards. */
function Below({ drawing }: { drawing: Drawing }) {
  if (isOpen(drawing))
    return (
      <button type="button" class="button is-quiet" onClick={() => cancel(drawing)}>
        {texts.progress.cancel}
      </button>
    );
  const [url] = drawing.images;
  return (
    <>
      <span class="hint">{texts.stage.made(drawing.seed, drawing.steps)}</span>
      <span class="sheet-actions">
        <button
          type="button"
          class="button is-quiet"
          title={texts.viewer.varyHint}
          onClick={() => varyAndShow(drawing)}
        >
          <Icon name="vary" /> {texts.viewer.vary}
        </button>
        {url && (
          <a class="button is-quiet" href={url} download={url.slice(url.lastIndexOf('/') + 1)}>
            <Icon name="download" /> {texts.viewer.download}
          </a>
        )}
      </span>
    </>
  );
}
