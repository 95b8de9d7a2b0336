import { MakeStyle } from '../collections/make-style';
import type { Drawing } from '../drawings/drawing';
import { isOpen } from '../drawings/drawing';
import { texts } from '../texts';
import { ConfirmButton } from '../ui/confirm-button';
import { Icon } from '../ui/icons';
import { cancel, removeAndSay, reuseAndShow, varyAndShow } from './actions';
import { compareWith, viewed } from './viewer-state';

interface ViewerActionsProps {
  drawing: Drawing;
  index: number;
}

export function ViewerActions({ drawing, index }: ViewerActionsProps) {
  const url = drawing.images[index];
  const compare = (): void => {
    compareWith.value = { id: drawing.id, index };
    viewed.value = undefined;
  };
  return (
    <div class="actions">
      <button type="button" class="button" title={texts.viewer.varyHint} onClick={() => varyAndShow(drawing)}>
        <Icon name="vary" /> {texts.viewer.vary}
      </button>
      <button type="button" class="button" title={texts.viewer.reuseHint} onClick={() => reuseAndShow(drawing, index)}>
        <Icon name="reuse" /> {texts.viewer.reuse}
      </button>
      {url && (
        <>
          <button type="button" class="button" onClick={compare}>
            <Icon name="compare" /> {texts.viewer.compare}
          </button>
          <a class="button" href={url} download={url.slice(url.lastIndexOf('/') + 1)}>
            <Icon name="download" /> {texts.viewer.download}
          </a>
        </>
      )}
      {url && drawing.finetuneId !== undefined && <MakeStyle drawing={drawing} />}
      {isOpen(drawing) && (
        <button type="button" class="button" onClick={() => cancel(drawing)}>
          {texts.progress.cancel}
        </button>
      )}
      <ConfirmButton
        label={texts.viewer.delete}
        question={texts.viewer.confirmDelete}
        onConfirm={() => removeAndSay(drawing)}
      />
    </div>
  );
}
