import { useState } from 'preact/hooks';
import type { Drawing } from '../drawings/drawing';
import { isOpen } from '../drawings/drawing';
import { texts } from '../texts';
import { Dialog } from '../ui/dialog';
import { cancel, removeAndSay } from './actions';
import { DrawingFrame } from './drawing-frame';
import { ProgressLine } from './progress-line';
import { openViewer } from './viewer-state';

export function Tile({ drawing }: { drawing: Drawing }) {
  const [isAsking, setAsking] = useState(false);
  const { id, prompt, images, status } = drawing;
  return (
    <li class={`tile is-${status}`}>
      <button
        type="button"
        class="tile-button"
        data-tile={id}
        aria-label={texts.gallery.tile(prompt, texts.status[status])}
        aria-describedby="gallery-keys"
        onClick={() => openViewer(id, 0)}
        onKeyDown={(event) => {
          if (event.key === 'Delete') setAsking(true);
        }}
      >
        <DrawingFrame drawing={drawing} index={0} />
        {images.length > 1 && (
          <span class="badge" aria-hidden="true">
            {images.length}
          </span>
        )}
      </button>
      {isOpen(drawing) && (
        <div class="tile-progress">
          <ProgressLine drawing={drawing} />
          <button type="button" class="link" onClick={() => cancel(drawing)}>
            {texts.progress.cancel}
          </button>
        </div>
      )}
      {isAsking && <AskDelete drawing={drawing} onClose={() => setAsking(false)} />}
    </li>
  );
}

function AskDelete({ drawing, onClose }: { drawing: Drawing; onClose: () => void }) {
  return (
    <Dialog label={texts.viewer.confirmDelete} className="ask" onClose={onClose}>
      <p>{texts.viewer.confirmDelete}</p>
      <div class="actions">
        <button
          type="button"
          class="button is-danger"
          onClick={() => {
            onClose();
            removeAndSay(drawing);
          }}
        >
          {texts.viewer.yes}
        </button>
        <button type="button" class="button is-quiet" onClick={onClose}>
          {texts.viewer.no}
        </button>
      </div>
    </Dialog>
  );
}
