import type { AspectRatio } from '../drawings/drawing';
import { bounds } from '../drawings/service-rules';
import { texts } from '../texts';
import { IconButton } from '../ui/icon-button';
import { Segments } from '../ui/segments';
import type { Scheduler } from './draft';
import { change, defaults, draft, drawnBy } from './draft';
import { schedulers } from './schedulers';
import { SeedField } from './seed-field';

const aspects: readonly AspectRatio[] = ['square', 'portrait', 'landscape'];

/** On a narrow screen the picture comes first, and the settings are folded. */
const hasRoom = matchMedia('(width >= 900px)').matches;

export function Settings() {
  const { steps, cfg } = draft.value;
  return (
    <details class="settings" open={hasRoom}>
      <summary>{texts.draw.more}</summary>
      <AspectField />
      <SliderField
        id="steps"
        label={texts.draw.steps}
        {...bounds.steps}
        step={1}
        value={steps}
        standard={defaults.value.steps}
        onChange={(value) => change({ steps: value })}
      />
      <SliderField
        id="cfg"
        label={texts.draw.cfg}
        {...bounds.cfg}
        step={0.5}
        value={cfg}
        standard={defaults.value.cfg}
        onChange={(value) => change({ cfg: value })}
      />
      <SeedField />
      <SliderField
        id="count"
        label={texts.draw.count}
        {...bounds.numGenerations}
        step={1}
        value={draft.value.count}
        onChange={(value) => change({ count: value ?? 1 })}
      />
      <SchedulerField />
      <Flags />
    </details>
  );
}

function Flags() {
  const { highResolution, promptWeighting, finetuneId } = draft.value;
  return (
    <>
      <Check
        label={texts.draw.highResolution}
        hint={texts.draw.highResolutionHint}
        checked={highResolution}
        onChange={(checked) => change({ highResolution: checked })}
      />
      {finetuneId === undefined && (
        <Check
          label={texts.draw.promptWeighting}
          hint={texts.draw.promptWeightingHint}
          checked={promptWeighting}
          onChange={(checked) => change({ promptWeighting: checked })}
        />
      )}
    </>
  );
}

interface CheckProps {
  label: string;
  hint: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

function Check({ label, hint, checked, onChange }: CheckProps) {
  return (
    <label class="check" title={hint}>
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>
        {label} <small>{hint}</small>
      </span>
    </label>
  );
}

function AspectField() {
  return (
    <Segments
      name="aspect"
      label={texts.draw.aspect}
      options={aspects}
      value={draft.value.aspectRatio}
      onChange={(aspectRatio) => change({ aspectRatio })}
      show={(aspect) => (
        <>
          <i class={`frame is-${aspect}`} aria-hidden="true" />
          {texts.draw.aspects[aspect]}
        </>
      )}
    />
  );
}

interface SliderFieldProps {
  id: string;
  label: string;
  min: number;
  max: number;
  step: number;
  /** Undefined is the model's default. */
  value: number | undefined;
  standard?: number;
  onChange: (value: number | undefined) => void;
}

function SliderField({ id, label, value, standard, onChange, min, max, step }: SliderFieldProps) {
  const shown = value ?? standard ?? min;
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <output for={id}>
        {value === undefined && <small>{texts.draw.isDefault}</small>}
        {value !== undefined && standard !== undefined && (
          <IconButton
            icon="undo"
            label={texts.draw.toDefault(label)}
            title={texts.draw.toDefault(label)}
            onClick={() => onChange(undefined)}
          />
        )}
        <b>{shown}</b>
      </output>
      <input
        id={id}
        type="range"
        {...{ min, max, step }}
        value={shown}
        onInput={(event) => onChange(Number(event.currentTarget.value))}
      />
    </div>
  );
}

function SchedulerField() {
  const { scheduler, finetuneId } = draft.value;
  const isOfFinetune = finetuneId !== undefined;
  const own = drawnBy.value?.served.defaults.scheduler ?? drawnBy.value?.served.scheduler;
  return (
    <div>
      <label for="scheduler">{texts.draw.scheduler}</label>
      <select
        id="scheduler"
        value={isOfFinetune ? '' : (scheduler ?? '')}
        disabled={isOfFinetune}
        title={isOfFinetune ? texts.draw.schedulerOfFinetune : undefined}
        onChange={({ currentTarget: { value } }) =>
          change({ scheduler: value === '' ? undefined : (value as Scheduler) })
        }
      >
        <option value="">{texts.draw.schedulerOwn(own)}</option>
        {schedulers.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
