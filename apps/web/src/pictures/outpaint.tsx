import { useRef, useState } from 'preact/hooks';
import { change, draft, type Outpaint } from '../draw/draft';
import { drawnSize, sizeRules } from '../draw/shape';
import { edgeBounds, serviceDefaults } from '../drawings/service-rules';
import { Button } from '../ui/buttons';
import { Range } from '../ui/range';
import { percentStyle, type Size } from './crop';
import type { SentPicture } from './sent-picture';

const sides = ['left', 'top', 'right', 'bottom'] as const;
type Side = (typeof sides)[number];
const isAcross = (side: Side): boolean => side === 'left' || side === 'right';
/** Pixels that are drawn beyond each edge of a picture. */
type Margins = Record<Side, number>;

const fitting = ({ width, height }: Size): boolean => {
  const { multiple, maxPixels } = sizeRules.value;
  return width + multiple <= edgeBounds.max && height + multiple <= edgeBounds.max && width * height < maxPixels;
};

function marginsOf(picture: Size, frame: Size, place: Outpaint): Margins {
  const spare = { x: frame.width - picture.width, y: frame.height - picture.height };
  // As the service does.
  const { x, y } = place === true ? { x: spare.x >> 1, y: spare.y >> 1 } : place;
  return { left: x, top: y, right: spare.x - x, bottom: spare.y - y };
}

/** The draft's size and place for these margins: what makes an edge a multiple is added at the right and below. */
function frameOf(picture: Size, { left, top, right, bottom }: Margins): Size & { outpaint: Outpaint } {
  const { multiple } = sizeRules.value;
  const edge = (length: number): number =>
    Math.min(edgeBounds.max, Math.max(edgeBounds.min, Math.ceil(length / multiple) * multiple));
  return {
    width: edge(picture.width + left + right),
    height: edge(picture.height + top + bottom),
    outpaint: { x: left, y: top },
  };
}

/** Draws around a picture, or no more. */
export function OutpaintButton({ picture: { shownUrl } }: { picture: SentPicture }) {
  const { outpaint } = draft.value;
  const [problem, setProblem] = useState('');
  if (outpaint)
    return (
      <Button kind="is-quiet" onClick={() => change({ outpaint: undefined, strength: serviceDefaults.strength })}>
        Draw around it no more
      </Button>
    );
  const start = async (): Promise<void> => {
    const picture = await naturalSize(shownUrl!);
    if (!fitting(picture)) {
      setProblem(`It has ${picture.width} x ${picture.height} pixels, and the model draws no larger picture.`);
      return;
    }
    const side = Math.ceil(picture.width / 4 / sizeRules.value.multiple) * sizeRules.value.multiple;
    const frame = frameOf(picture, { left: side, right: side, top: 0, bottom: 0 });
    const strength = serviceDefaults.outpaintStrength;
    change({ ...frame, aspect_ratio: null, mask: undefined, references: [], strength });
  };
  return (
    <>
      <Button disabled={shownUrl === undefined} onClick={() => void start()}>
        Draw around it
      </Button>
      {problem && <p class="problem">{problem}</p>}
    </>
  );
}

async function naturalSize(url: string): Promise<Size> {
  const image = new Image();
  image.src = url;
  await image.decode();
  return { width: image.naturalWidth, height: image.naturalHeight };
}

/** The picture in its frame, whose edges are dragged, or moved by sliders; all snaps to what the model draws. */
export function OutpaintFrame({ picture, place }: { picture: SentPicture; place: Outpaint }) {
  const [own, setOwn] = useState<Size | undefined>();
  const frame = drawnSize.value;
  const { multiple, maxPixels } = sizeRules.value;
  const margins = own && marginsOf(own, frame, place);
  const set = (side: Side, pixels: number): void => {
    if (!own || !margins) return;
    const length = isAcross(side) ? own.width : own.height;
    const most = edgeBounds.max - length;
    const wanted = Math.min(most, Math.max(0, Math.round(pixels / multiple) * multiple));
    const next = frameOf(own, { ...margins, [side]: wanted });
    if (next.width * next.height <= maxPixels) change(next);
  };
  const inFrame = own && {
    left: (100 * margins!.left) / frame.width,
    top: (100 * margins!.top) / frame.height,
    width: (100 * own.width) / frame.width,
    height: (100 * own.height) / frame.height,
  };
  return (
    <>
      <div class="outpaint" style={{ '--ratio': String(frame.width / frame.height) }}>
        <img
          src={picture.shownUrl}
          alt="Picture to draw around"
          draggable={false}
          style={inFrame ? percentStyle(inFrame) : {}}
          onLoad={({ currentTarget: { naturalWidth: width, naturalHeight: height } }) => setOwn({ width, height })}
        />
        {margins && sides.map((side) => <Handle key={side} {...{ side }} value={margins[side]} onMove={set} />)}
      </div>
      <p class="hint">{`${frame.width} x ${frame.height} pixels. Drag an edge of the frame.`}</p>
      {own && margins && <Sliders {...{ own, margins, set }} />}
    </>
  );
}

interface SlidersProps {
  own: Size;
  margins: Margins;
  set: (side: Side, pixels: number) => void;
}

function Sliders({ own, margins, set }: SlidersProps) {
  return (
    <>
      {sides.map((side) => (
        <Range
          key={side}
          label={`Beyond the ${side}`}
          min={0}
          max={edgeBounds.max - (isAcross(side) ? own.width : own.height)}
          step={sizeRules.value.multiple}
          value={margins[side]}
          onChange={(to) => set(side, to)}
        />
      ))}
    </>
  );
}

interface HandleProps {
  side: Side;
  value: number;
  onMove: (side: Side, pixels: number) => void;
}

/** An edge of the frame, to drag with a mouse or a finger. The sliders below do the same for keyboards. */
function Handle({ side, value, onMove }: HandleProps) {
  const drag = useRef<{ from: number; value: number; scale: number } | undefined>(undefined);
  const at = (event: PointerEvent): number => (isAcross(side) ? event.clientX : event.clientY);
  const sign = side === 'left' || side === 'top' ? -1 : 1;
  return (
    <span
      class={`outpaint-edge is-${side}`}
      aria-hidden="true"
      onTouchStart={(event) => event.preventDefault()}
      onPointerDown={(event) => {
        const box = event.currentTarget.parentElement!.getBoundingClientRect();
        const { width, height } = drawnSize.value;
        event.currentTarget.setPointerCapture(event.pointerId);
        drag.current = { from: at(event), value, scale: isAcross(side) ? width / box.width : height / box.height };
      }}
      onPointerMove={(event) => {
        if (!drag.current) return;
        onMove(side, drag.current.value + sign * (at(event) - drag.current.from) * drag.current.scale);
      }}
      onPointerUp={() => (drag.current = undefined)}
      onPointerCancel={() => (drag.current = undefined)}
    />
  );
}
