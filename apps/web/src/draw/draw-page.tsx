import { useEffect, useRef, useState } from 'preact/hooks';
import { lengths } from '../drawings/service-rules';
import { finetunes, hasWeights, titleOf } from '../finetunes/finetunes';
import { Gallery } from '../gallery/gallery';
import { areModelsLoaded, choiceText, modelChoices } from '../models/models';
import { restoreFrom } from '../png/drop-target';
import { Button } from '../ui/buttons';
import { Options } from '../ui/fields';
import { attempt } from '../ui/notices';
import { ControlInput } from '../pictures/control-input';
import { startFrom } from '../pictures/inputs';
import { Painting, PictureInput } from '../pictures/picture-input';
import { lookAt, ReferencesInput, roomFor } from '../pictures/references-input';
import { useUpload } from '../pictures/sent-picture';
import { useDrop } from '../ui/drop';
import { asked, scrollToPart } from './bring-up';
import { CombinedFinetunes } from './combined-finetunes';
import {
  cannot,
  change,
  defaults,
  draft,
  drawnBy,
  drawnWith,
  finetuneId,
  lacksName,
  looksAtPictures,
  shown,
} from './draft';
import { Ideas } from './ideas';
import { Settings } from './settings';
import { Stage } from './stage';
import { startDrawing } from './start-drawing';

export function DrawPage() {
  // An effect runs after the dialog is gone, which returns the focus to where it was opened.
  useEffect(() => {
    if (asked.value) scrollToPart(asked.value);
    asked.value = undefined;
  }, [asked.value]);
  return (
    <div class="draw-page">
      <PromptForm />
      <div class="results">
        <Stage />
        <Gallery />
      </div>
      <Painting />
    </div>
  );
}

function PromptForm() {
  const [isSending, setSending] = useState(false);
  const upload = useUpload(startFrom);
  const uploads = useUpload(lookAt);
  const { isOver, handlers } = useDrop((files) =>
    looksAtPictures.value ? uploads.send(...roomFor(files)) : upload.send(files[0]),
  );
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isSending || draft.value.prompt.trim() === '') return;
    setSending(true);
    await attempt(startDrawing);
    setSending(false);
    scrollToPart('stage');
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit(event);
  };
  return (
    <form
      class={`prompt-form panel ${isOver ? 'is-over' : ''}`}
      onSubmit={(event) => void submit(event)}
      onKeyDown={onKeyDown}
      {...handlers}
    >
      <h1 class="visually-hidden">Draw a picture</h1>
      <Texts />
      <ReferencesInput upload={uploads} />
      <ModelField />
      <Submit isSending={isSending} />
      <div class="inputs">
        <PictureInput upload={upload} />
        <ControlInput />
        <CombinedFinetunes />
      </div>
      <Settings />
      <FromPng />
    </form>
  );
}

function Texts() {
  const { prompt, negative_prompt, cfg = defaults.value.cfg } = shown.value;
  const refusal = cannot.value.negative_prompt;
  const remark = refusal === undefined ? 'With a guidance of 1 it does nothing.' : `It is off. ${refusal}`;
  const hasRemark = refusal !== undefined || (cfg === 1 && negative_prompt !== '');
  return (
    <>
      <label for="prompt">Prompt</label>
      <textarea
        id="prompt"
        rows={3}
        maxLength={lengths.prompt}
        placeholder="What should the picture show?"
        aria-describedby={lacksName.value ? 'lacks-name' : undefined}
        value={prompt}
        onInput={(event) => change({ prompt: event.currentTarget.value })}
      />
      <LacksName />
      <Ideas />
      <label for="negative">Negative prompt</label>
      <input
        id="negative"
        maxLength={lengths.prompt}
        autocomplete="off"
        placeholder={refusal === undefined ? 'What it should not show' : ''}
        disabled={refusal !== undefined}
        aria-describedby={hasRemark ? 'negative-remark' : undefined}
        value={negative_prompt}
        onInput={(event) => change({ negative_prompt: event.currentTarget.value })}
      />
      {hasRemark && (
        <p class="hint" id="negative-remark">
          {remark}
        </p>
      )}
    </>
  );
}

function Submit({ isSending }: { isSending: boolean }) {
  const hasNoModel = areModelsLoaded.value && !drawnBy.value;
  const isEmpty = draft.value.prompt.trim() === '';
  return (
    <>
      {hasNoModel && <p class="problem">No model is installed that can draw.</p>}
      <button class="button is-primary is-wide" disabled={isSending || isEmpty || hasNoModel}>
        {isSending ? 'Sending …' : 'Draw'}
        <kbd aria-hidden="true">Ctrl + Enter</kbd>
      </button>
    </>
  );
}

function LacksName() {
  const name = drawnWith.value?.name;
  if (name === undefined || !lacksName.value) return null;
  const add = (): void => change({ prompt: `${draft.value.prompt.trim()} ${name}`.trim() });
  return (
    <p class="hint" id="lacks-name">
      The prompt must contain the word “{name}”, by which this Fine-Tune knows its object.{' '}
      <button type="button" class="link" onClick={add}>
        Add “{name}”
      </button>
    </p>
  );
}

function FromPng() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button kind="is-quiet from-png" icon="undo" onClick={() => input.current?.click()}>
        Settings from a PNG
      </Button>
      <input
        ref={input}
        type="file"
        accept="image/png"
        hidden
        aria-label="Settings from a PNG"
        data-testid="png"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file) void restoreFrom(file);
          currentTarget.value = '';
        }}
      />
    </>
  );
}

/** Values of the list: a model's name, or a Fine-Tune's id after this. */
const finetunePrefix = 'finetune:';

function choose(value: string): void {
  if (value.startsWith(finetunePrefix)) change({ finetuneId: value.slice(finetunePrefix.length) });
  else change({ model: value, finetuneId: undefined });
}

function ModelField() {
  const drawnWith = finetuneId.value;
  const value = drawnWith === undefined ? (drawnBy.value?.name ?? '') : finetunePrefix + drawnWith;
  const models = modelChoices.value.map((choice) => [choice.name, choiceText(choice)] as const);
  // The settings of a drawn picture may name one without weights: the list shows what is chosen.
  const listed = finetunes.value.filter((each) => hasWeights(each) || each.id === drawnWith);
  const ofFinetunes = listed.map((each) => [finetunePrefix + each.id, titleOf(each)] as const);
  return (
    <>
      <label for="model">Model</label>
      <select id="model" value={value} onChange={(event) => choose(event.currentTarget.value)}>
        <optgroup label="Models">
          <Options choices={models} value={value} />
        </optgroup>
        {ofFinetunes.length > 0 && (
          <optgroup label="Fine-Tunes">
            <Options choices={ofFinetunes} value={value} />
          </optgroup>
        )}
      </select>
    </>
  );
}
