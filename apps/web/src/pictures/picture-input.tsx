import { useEffect } from 'preact/hooks';
import { change, draft } from '../draw/draft';
import { Button, IconButton } from '../ui/buttons';
import { Range } from '../ui/range';
import { shapeRatio } from '../draw/shape';
import { CropView } from './crop-view';
import { isPainting, startFromNothing } from './inputs';
import { MaskDialog } from './mask-dialog';
import { OutpaintButton, OutpaintFrame } from './outpaint';
import { PictureDrop } from './picture-drop';
import type { SentPicture, UploadState } from './sent-picture';

/** A picture to start from: dropped, chosen, pasted, or drawn before. */
export function PictureInput({ upload }: { upload: UploadState }) {
  const { image } = draft.value;
  useEffect(() => {
    const paste = (event: ClipboardEvent): void => {
      const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith('image/'));
      if (!file || document.querySelector('dialog[open]')) return;
      event.preventDefault();
      upload.send(file);
    };
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  });
  return (
    <section class="input-card" aria-labelledby="image-title">
      <div class="input-head">
        <h2 id="image-title">Start from a picture</h2>
        {image && <IconButton icon="close" label="Start from no picture" onClick={startFromNothing} />}
      </div>
      {image ? <ChosenPicture image={image} /> : <PictureDrop label="Picture to start from" upload={upload} />}
    </section>
  );
}

/** The mask dialog; outside the form, whose keyboard shortcuts differ. */
export function Painting() {
  const { image, mask } = draft.value;
  if (!image || !isPainting.value) return null;
  return (
    <MaskDialog
      picture={image}
      {...{ mask, ratio: shapeRatio.value }}
      onMask={(painted) => change({ mask: painted })}
      onClose={() => (isPainting.value = false)}
    />
  );
}

function ChosenPicture({ image }: { image: SentPicture }) {
  const { mask, strength, outpaint } = draft.value;
  return (
    <>
      {outpaint ? (
        <OutpaintFrame key={image.url} picture={image} place={outpaint} />
      ) : (
        <CropView key={image.url} picture={image} alt="Picture to start from" ratio={shapeRatio.value}>
          {() => mask?.shownUrl && <img class="mask-veil" src={mask.shownUrl} alt="What is repainted, in white" />}
        </CropView>
      )}
      <Range
        label="Strength"
        min={0.05}
        max={1}
        step={0.05}
        value={strength}
        onChange={(to) => change({ strength: to })}
      />
      <p class="hint">Little keeps the picture; 1 draws it all anew.</p>
      <div class="actions">
        <OutpaintButton picture={image} />
        <Button
          icon="brush"
          disabled={image.shownUrl === undefined || outpaint !== undefined}
          onClick={() => (isPainting.value = true)}
        >
          {mask ? 'Change the part' : 'Repaint a part'}
        </Button>
        {mask && (
          <Button kind="is-quiet" onClick={() => change({ mask: undefined })}>
            Repaint all of it
          </Button>
        )}
      </div>
    </>
  );
}
