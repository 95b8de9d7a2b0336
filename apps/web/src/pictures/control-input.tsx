import { change, draft, drawnBy } from '../draw/draft';
import { shapeRatio } from '../draw/shape';
import { controlModels } from '../models/models';
import { IconButton } from '../ui/buttons';
import { SelectField } from '../ui/fields';
import { Range } from '../ui/range';
import { CannyView } from './canny-view';
import { CropView } from './crop-view';
import { PictureDrop } from './picture-drop';
import { type Control, useUpload } from './sent-picture';

const mostControls = 3;

/** Pictures that a drawing follows, where a ControlNet for the model is installed. */
export function ControlInput() {
  const { control } = draft.value;
  const fitting = controlModels.value.filter(({ family }) => family === drawnBy.value?.served.family);
  const upload = useUpload(({ size: _size, ...image }) =>
    change({
      control: [
        ...draft.value.control,
        { image, model: fitting[0].name, scale: 1, start: 0, end: 1, preprocess: null },
      ],
    }),
  );
  if (fitting.length === 0 && control.length === 0) return null;
  return (
    <section class="input-card" aria-labelledby="control-title">
      <div class="input-head">
        <h2 id="control-title">Follow a picture</h2>
      </div>
      {control.map((each, index) => (
        <ControlCard key={`${index} ${each.image.url}`} control={each} index={index} models={fitting} />
      ))}
      {fitting.length > 0 && control.length < mostControls && <PictureDrop label="Picture to follow" upload={upload} />}
    </section>
  );
}

interface ControlCardProps {
  control: Control;
  index: number;
  models: readonly { name: string }[];
}

function ControlCard({ control, index, models }: ControlCardProps) {
  const { image, model, preprocess } = control;
  const all = draft.value.control;
  const set: Set = (part) => change({ control: all.map((each, at) => (at === index ? { ...each, ...part } : each)) });
  const nth = all.length > 1 ? ` ${index + 1}` : '';
  return (
    <div class="control" role="group" aria-label={`Picture to follow${nth}`}>
      <div class="input-head">
        <span>{`Picture${nth}`}</span>
        <IconButton
          icon="close"
          label={`Follow picture${nth} no more`}
          onClick={() => change({ control: all.filter((_, at) => at !== index) })}
        />
      </div>
      <CropView picture={image} alt={`Picture to follow${nth}`} ratio={shapeRatio.value}>
        {(size) =>
          preprocess === 'canny' &&
          image.shownUrl && <CannyView url={image.shownUrl} size={size} ratio={shapeRatio.value} />
        }
      </CropView>
      <SelectField
        id={`control-model-${index}`}
        label="ControlNet"
        value={model}
        choices={models.map(({ name }) => [name, name])}
        onChange={({ currentTarget }) => set({ model: currentTarget.value })}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={preprocess === 'canny'}
          onChange={({ currentTarget }) => set({ preprocess: currentTarget.checked ? 'canny' : null })}
        />
        <span>
          Follow its edges <small>A photo becomes a map of its edges (canny)</small>
        </span>
      </label>
      <Ranges control={control} set={set} />
    </div>
  );
}

type Set = (part: Partial<Control>) => void;

/** How strongly it is followed, and in which part of the steps. */
function Ranges({ control: { scale, start, end }, set }: { control: Control; set: Set }) {
  return (
    <>
      <Range label="How strongly" min={0} max={2} step={0.05} value={scale} onChange={(to) => set({ scale: to })} />
      <Range
        label="From"
        min={0}
        max={0.95}
        step={0.05}
        value={start}
        onChange={(to) => set({ start: to, end: Math.max(end, to) })}
      />
      <Range
        label="Until"
        min={0.05}
        max={1}
        step={0.05}
        value={end}
        onChange={(to) => set({ end: to, start: Math.min(start, to) })}
      />
    </>
  );
}
