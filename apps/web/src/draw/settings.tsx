import { ratioOfShape } from '../drawings/shapes';
import { shapeText } from '../drawings/drawing';
import { bounds, edgeBounds, largestSeed } from '../drawings/service-rules';
import { ownScheduler } from '../models/models';
import { IconButton } from '../ui/buttons';
import { Segments, SelectField, TextField } from '../ui/fields';
import { Range } from '../ui/range';
import {
  cannot,
  change,
  defaults,
  draft,
  drawnBy,
  isSeedLocked,
  newSeed,
  type Scheduler,
  schedulers,
  shown,
} from './draft';
import { drawnSize, sizeRules, snapped } from './shape';

/** Shapes to choose from; the last is a width and a height. */
const shapes = ['square', 'portrait', 'landscape', '4:3', '16:9', '21:9', '3:4', '9:16', 'own'] as const;

/** On a narrow screen the settings are folded, so that the picture comes first. */
const hasRoom = matchMedia('(width >= 900px)').matches;

export function Settings() {
  const { steps, cfg, num_generations, high_resolution, prompt_weighting } = draft.value;
  return (
    <details class="settings" open={hasRoom}>
      <summary>Settings</summary>
      <ShapeField />
      <SliderField name="steps" label="Steps" bounds={bounds.steps} value={steps} standard={defaults.value.steps} />
      <SliderField
        name="cfg"
        label="Guidance (cfg)"
        bounds={bounds.cfg}
        step={0.5}
        value={cfg}
        standard={defaults.value.cfg}
        refusal={cannot.value.cfg}
      />
      <SeedField />
      <SliderField name="num_generations" label="Pictures" bounds={bounds.numGenerations} value={num_generations} />
      <SchedulerField />
      <Check name="high_resolution" label="High resolution" hint="Long edge of 4096 pixels" checked={high_resolution} />
      {cannot.value.prompt_weighting === undefined && (
        <Check
          name="prompt_weighting"
          label="Weights in the prompt"
          hint="(word:1.3) counts more, BREAK ends a chunk"
          checked={prompt_weighting}
        />
      )}
    </details>
  );
}

type Shape = (typeof shapes)[number];

function ShapeField() {
  const { aspect_ratio, image } = draft.value;
  const size = drawnSize.value;
  const choose = (chosen: Shape): void =>
    change(
      chosen === 'own'
        ? { aspect_ratio: null, ...size, ...(size.width < edgeBounds.min && { width: edgeBounds.min }) }
        : { aspect_ratio: chosen, ...(image && { outpaint: undefined }) },
    );
  return (
    <>
      <Segments
        name="aspect"
        label="Shape"
        isGrid
        options={shapes}
        value={(aspect_ratio as Shape | null) ?? 'own'}
        onChange={choose}
        show={(shape) => (
          <>
            {shape !== 'own' && <i class="frame" style={iconStyle(shape)} aria-hidden="true" />}
            {shape === 'own' ? 'Own size' : shapeText({ aspect_ratio: shape })}
          </>
        )}
      />
      {aspect_ratio === null ? (
        <div class="edges">
          <EdgeField edge="width" label="Width" />
          <EdgeField edge="height" label="Height" />
        </div>
      ) : (
        <p class="hint">{`${size.width} x ${size.height} pixels`}</p>
      )}
    </>
  );
}

/** A small frame of that shape. */
function iconStyle(shape: string): Record<string, string> {
  const side = Math.sqrt(ratioOfShape(shape));
  return { width: `${(14 * side).toFixed(1)}px`, height: `${(14 / side).toFixed(1)}px` };
}

/** The service takes multiples; another number becomes the nearest when it is left. */
function EdgeField({ edge, label }: { edge: 'width' | 'height'; label: string }) {
  const { width, height } = drawnSize.value;
  const { multiple, maxPixels } = sizeRules.value;
  const isTooLarge = width * height > maxPixels;
  return (
    <TextField
      id={`edge-${edge}`}
      label={label}
      type="number"
      {...edgeBounds}
      step={multiple}
      value={drawnSize.value[edge]}
      {...(isTooLarge && { hint: `This model draws at most ${maxPixels} pixels.` })}
      onChange={({ currentTarget }) => change({ [edge]: snapped(Number(currentTarget.value)), outpaint: undefined })}
    />
  );
}

interface CheckProps {
  /** Field of the draft. */
  name: 'high_resolution' | 'prompt_weighting';
  label: string;
  hint: string;
  checked: boolean;
}

function Check({ name, label, hint, checked }: CheckProps) {
  return (
    <label class="check" title={hint}>
      <input type="checkbox" checked={checked} onChange={(event) => change({ [name]: event.currentTarget.checked })} />
      <span>
        {label} <small>{hint}</small>
      </span>
    </label>
  );
}

interface SliderFieldProps {
  /** Field of the draft. */
  name: 'steps' | 'cfg' | 'num_generations';
  label: string;
  bounds: { min: number; max: number };
  step?: number;
  /** Undefined is the model's default. */
  value: number | undefined;
  standard?: number;
  /** Why it changes nothing with the model that draws. */
  refusal?: string | undefined;
}

function SliderField({ name, label, bounds: { min, max }, step = 1, value, standard, refusal }: SliderFieldProps) {
  if (refusal !== undefined)
    return (
      <Range {...{ label, min, max, step }} value={standard ?? min} disabled beside={<small>off. {refusal}</small>} />
    );
  const back = `${label}: back to the model’s default`;
  return (
    <Range
      {...{ label, min, max, step }}
      value={value ?? standard ?? min}
      beside={
        value === undefined ? (
          <small>model’s default</small>
        ) : (
          standard !== undefined && (
            <IconButton icon="undo" label={back} title={back} onClick={() => change({ [name]: undefined })} />
          )
        )
      }
      onChange={(chosen) => change({ [name]: chosen })}
    />
  );
}

function SchedulerField() {
  const { scheduler } = shown.value;
  const fitting = schedulers.filter((name) => drawnBy.value?.served.schedulers.includes(name) ?? true);
  const own = drawnBy.value?.served.defaults.scheduler ?? drawnBy.value?.served.scheduler;
  return (
    <SelectField
      id="scheduler"
      label="Scheduler"
      choices={[['', ownScheduler(own)], ...fitting.map((name) => [name, name] as const)]}
      value={scheduler ?? ''}
      onChange={({ currentTarget: { value } }) => change({ scheduler: (value || undefined) as Scheduler | undefined })}
    />
  );
}

function SeedField() {
  const { seed } = draft.value;
  const keep = (chosen: number): void => {
    change({ seed: chosen });
    isSeedLocked.value = true;
  };
  const write = (text: string): void => {
    const value = Math.floor(Number(text));
    if (text !== '' && value >= 0 && value <= largestSeed) keep(value);
  };
  return (
    <div>
      <label for="seed">Seed</label>
      <div class="seed">
        <input
          id="seed"
          type="number"
          min={0}
          max={largestSeed}
          value={seed}
          onInput={(event) => write(event.currentTarget.value)}
        />
        <IconButton icon="dice" label="New random seed" title="New random seed" onClick={() => keep(newSeed())} />
        <IconButton
          icon={isSeedLocked.value ? 'lock' : 'unlock'}
          label="Keep this seed for the next picture"
          title="Keep this seed for the next picture"
          aria-pressed={isSeedLocked.value}
          onClick={() => (isSeedLocked.value = !isSeedLocked.value)}
        />
      </div>
    </div>
  );
}
