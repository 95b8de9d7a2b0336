import { drawings } from '../drawings/store';
import type { Drawing } from '../drawings/drawing';
import { texts } from '../texts';
import { Dialog } from '../ui/dialog';
import { IconButton } from '../ui/icon-button';
import { Picture } from './picture';
import { ViewerActions } from './viewer-actions';
import { ViewerDetails } from './viewer-details';
import { neighbour, viewed } from './viewer-state';

const close = (): void => void (viewed.value = undefined);

/** A picture in full, with everything about it. */
export function Viewer() {
  const open = viewed.value;
  const drawing = open && drawings.value.get(open.id);
  return open && drawing ? (
    <OpenViewer drawing={drawing} index={Math.min(open.index, Math.max(0, drawing.images.length - 1))} />
  ) : null;
}

function move(by: number): void {
  const next = neighbour(by);
  if (next) viewed.value = next;
}

function onKeyDown(event: KeyboardEvent): void {
  const isField = event.target instanceof Element && event.target.closest('input, select, textarea, pre') !== null;
  if (isField) return;
  if (event.key === 'ArrowLeft') move(-1);
  if (event.key === 'ArrowRight') move(1);
}

function OpenViewer({ drawing, index }: { drawing: Drawing; index: number }) {
  return (
    <Dialog label={texts.viewer.label} className="viewer" onClose={close} onKeyDown={onKeyDown}>
      <div class="viewer-stage">
        <Picture key={`${drawing.id}-${index}`} drawing={drawing} index={index} />
        <IconButton
          icon="left"
          kind="is-previous"
          label={texts.viewer.previous}
          disabled={!neighbour(-1)}
          onClick={() => move(-1)}
        />
        <IconButton
          icon="right"
          kind="is-next"
          label={texts.viewer.next}
          disabled={!neighbour(1)}
          onClick={() => move(1)}
        />
      </div>
      <aside class="viewer-side" aria-label={texts.viewer.parameters}>
        <IconButton icon="close" kind="is-close" label={texts.viewer.close} onClick={close} />
        <ViewerDetails drawing={drawing} index={index} />
        <ViewerActions drawing={drawing} index={index} />
      </aside>
    </Dialog>
  );
}
