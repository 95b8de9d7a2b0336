import { useRef, useState } from 'preact/hooks';
import { lengths } from '../drawings/service-rules';
import { restoreFrom } from '../png/drop-target';
import { areModelsLoaded } from '../models/models';
import { texts } from '../texts';
import { Icon } from '../ui/icons';
import { attempt } from '../ui/notices';
import { Chips } from './chips';
import { change, draft, drawnBy, drawnWith, lacksName } from './draft';
import { ModelField } from './model-field';
import { Settings } from './settings';
import { startDrawing } from './start-drawing';

export function PromptForm() {
  const [isSending, setSending] = useState(false);
  const { prompt, negativePrompt } = draft.value;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isSending || prompt.trim() === '') return;
    setSending(true);
    await attempt(startDrawing);
    setSending(false);
    showStage();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit(event);
  };
  return (
    <form class="prompt-form panel" onSubmit={(event) => void submit(event)} onKeyDown={onKeyDown}>
      <h1 class="visually-hidden">{texts.draw.title}</h1>
      <label for="prompt">{texts.draw.prompt}</label>
      <textarea
        id="prompt"
        rows={3}
        maxLength={lengths.prompt}
        placeholder={texts.draw.placeholder}
        aria-describedby={lacksName.value ? 'lacks-name' : undefined}
        value={prompt}
        onInput={(event) => change({ prompt: event.currentTarget.value })}
      />
      <LacksName />
      <Chips />
      <label for="negative">{texts.draw.negative}</label>
      <input
        id="negative"
        maxLength={lengths.prompt}
        autocomplete="off"
        placeholder={texts.draw.negativePlaceholder}
        value={negativePrompt}
        onInput={(event) => change({ negativePrompt: event.currentTarget.value })}
      />
      <ModelField />
      <Submit isSending={isSending} />
      <Settings />
      <FromPng />
    </form>
  );
}

/** On a narrow screen the picture forms below the form. */
function showStage(): void {
  const stage = document.querySelector('.stage');
  if (stage && stage.getBoundingClientRect().top > innerHeight / 2) stage.scrollIntoView({ behavior: 'smooth' });
}

function Submit({ isSending }: { isSending: boolean }) {
  const hasNoModel = areModelsLoaded.value && !drawnBy.value;
  const isEmpty = draft.value.prompt.trim() === '';
  return (
    <>
      {hasNoModel && <p class="problem">{texts.draw.noModel}</p>}
      <button class="button is-primary is-wide" disabled={isSending || isEmpty || hasNoModel}>
        {isSending ? texts.draw.submitting : texts.draw.submit}
        <kbd aria-hidden="true">{texts.draw.shortcut}</kbd>
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
      {texts.draw.lacksName(name)}{' '}
      <button type="button" class="link" onClick={add}>
        {texts.draw.addName(name)}
      </button>
    </p>
  );
}

/** Takes the settings of a chosen picture, as dropping it does. */
function FromPng() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="button is-quiet from-png" onClick={() => input.current?.click()}>
        <Icon name="undo" /> {texts.draw.fromPng}
      </button>
      <input
        ref={input}
        type="file"
        accept="image/png"
        hidden
        aria-label={texts.draw.fromPng}
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
