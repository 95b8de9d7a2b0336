import { useState } from 'preact/hooks';
import { MakeStyle } from '../collections/make-style';
import { type Drawing, isOpen } from '../drawings/drawing';
import { useWhole } from '../drawings/use-whole';
import { serviceUrl } from '../service/reach';
import { ConfirmButton, IconButton, Button, Download } from '../ui/buttons';
import { Facts } from '../ui/card';
import { Dialog } from '../ui/dialog';
import { Segments } from '../ui/fields';
import { cancel, copy, removeAndSay, reuseAndShow, varyAndShow } from './actions';
import { factsOf } from './facts';
import { BeforeAfter } from '../ui/before-after';
import { drawOnAndShow } from '../pictures/inputs';
import { sentPicture } from '../pictures/sent-picture';
import { Picture, type PictureProps } from './picture';
import { type Language, languages, snippetOf } from './snippets';
import { compareWith, neighbour, viewed } from './viewer-state';

const close = (): void => void (viewed.value = undefined);

/** A picture in full, with its facts and actions. */
export function Viewer() {
  const open = viewed.value;
  const drawing = useWhole(open?.id);
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

function OpenViewer({ drawing, index }: PictureProps) {
  const [isOverStart, setOverStart] = useState(false);
  const start = drawing.image === null ? undefined : sentPicture(drawing.image).shownUrl;
  const url = drawing.images[index];
  return (
    <Dialog label="Picture" className="viewer" onClose={close} onKeyDown={onKeyDown}>
      <div class="viewer-stage">
        {isOverStart && start && url ? (
          <BeforeAfter
            before={{ url: start, alt: 'The picture that it started from' }}
            after={{ url, alt: drawing.prompt }}
          />
        ) : (
          <Picture key={`${drawing.id}-${index}`} drawing={drawing} index={index} />
        )}
        <IconButton
          icon="left"
          kind="is-previous"
          label="Previous picture"
          disabled={!neighbour(-1)}
          onClick={() => move(-1)}
        />
        <IconButton icon="right" kind="is-next" label="Next picture" disabled={!neighbour(1)} onClick={() => move(1)} />
      </div>
      <aside class="viewer-side" aria-label="Settings">
        <IconButton icon="close" kind="is-close" label="Close" onClick={close} />
        <h2 class="viewer-prompt" tabIndex={0}>
          {drawing.prompt}
        </h2>
        {drawing.images.length > 1 && <p class="hint">{`Picture ${index + 1} of ${drawing.images.length}`}</p>}
        <ViewerActions drawing={drawing} index={index} />
        {start && url && (
          <Button icon="compare" aria-pressed={isOverStart} onClick={() => setOverStart(!isOverStart)}>
            Before and after
          </Button>
        )}
        <h3>Settings</h3>
        <Facts facts={factsOf(drawing, index).filter(({ isLong }) => !isLong || drawing.negative_prompt !== null)} />
        <Code drawing={drawing} />
      </aside>
    </Dialog>
  );
}

function ViewerActions({ drawing, index }: PictureProps) {
  const url = drawing.images[index];
  const compare = (): void => {
    compareWith.value = { id: drawing.id, index };
    viewed.value = undefined;
  };
  return (
    <div class="actions">
      <Button icon="vary" title="Draw it again with a new seed" onClick={() => varyAndShow(drawing)}>
        Vary
      </Button>
      <Button icon="reuse" title="Put its settings into the form" onClick={() => reuseAndShow(drawing, index)}>
        Reuse
      </Button>
      {url && (
        <>
          <Button
            icon="picture"
            title="Put it into the form, to draw on from it"
            onClick={() => drawOnAndShow(drawing, index, false)}
          >
            Draw on
          </Button>
          <Button icon="brush" onClick={() => drawOnAndShow(drawing, index, true)}>
            Repaint a part
          </Button>
          <Button icon="compare" onClick={compare}>
            Compare
          </Button>
          <Download url={url} />
        </>
      )}
      {url && drawing.finetuneId !== undefined && <MakeStyle drawing={drawing} />}
      {isOpen(drawing) && <Button onClick={() => cancel(drawing)}>Cancel</Button>}
      <ConfirmButton label="Delete" question="Delete it for good?" onConfirm={() => removeAndSay(drawing)} />
    </div>
  );
}

function Code({ drawing }: { drawing: Drawing }) {
  const [language, setLanguage] = useState<Language>('curl');
  const text = snippetOf(language, drawing, serviceUrl);
  return (
    <div class="code">
      <div class="code-head">
        <h3>Draw it again with</h3>
        <Segments
          name="language"
          label="Draw it again with"
          options={languages}
          value={language}
          onChange={setLanguage}
          show={(name) => name}
          isSmall
        />
      </div>
      <pre tabIndex={0} aria-label={language}>
        {text}
      </pre>
      <Button kind="is-quiet" onClick={() => void copy(text)}>
        Copy
      </Button>
    </div>
  );
}
