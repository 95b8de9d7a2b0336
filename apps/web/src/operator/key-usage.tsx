import type { Usage } from '../service/client';
import { client } from '../session/session';
import { picturesText } from '../ui/units';
import { Loaded, usePolled } from '../ui/reading';
import { type Column, Table } from './tables';

const days = 30;
const dayMs = 86_400_000;
/** The usage of a day changes slowly. */
const refreshMs = 60_000;
/** In the drawing's own units: a bar with the gap after it, the bar alone, and the height. */
const [pitch, barWidth, height] = [10, 7, 56];

interface Day extends Pick<Usage, 'images' | 'steps' | 'compute_seconds'> {
  day: string;
}

const columns: Column<Day>[] = [
  ['Day', ({ day }) => day],
  ['Pictures', ({ images }) => images, 'number'],
  ['Steps', ({ steps }) => steps, 'number'],
  ['Seconds of drawing', ({ compute_seconds }) => compute_seconds.toFixed(1), 'number'],
];

/** The oldest first, with days without any. */
function everyDay(usage: readonly Usage[]): Day[] {
  const byDay = new Map(usage.map((each) => [each.day, each]));
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(Date.now() - (days - 1 - index) * dayMs).toISOString().slice(0, 10);
    return { day, images: 0, steps: 0, compute_seconds: 0, ...byDay.get(day) };
  });
}

/** Pictures of a key by day, as bars and as a table. */
export function KeyUsage({ id, name }: { id: string; name: string }) {
  const usage = usePolled(() => client().keys.usage(id), refreshMs);
  return (
    <Loaded of={usage}>
      {(found) =>
        found.length === 0 ? (
          <p class="hint">No pictures in the last 30 days.</p>
        ) : (
          <Plot name={name} all={everyDay(found)} />
        )
      }
    </Loaded>
  );
}

function Plot({ name, all }: { name: string; all: readonly Day[] }) {
  const most = Math.max(1, ...all.map(({ images }) => images));
  const sum = (value: (day: Day) => number): number => all.reduce((total, day) => total + value(day), 0);
  const pictures = picturesText(sum(({ images }) => images));
  const seconds = Math.round(sum(({ compute_seconds }) => compute_seconds));
  return (
    <figure class="usage">
      <figcaption>
        <span>Pictures of the last 30 days</span>
        <b>
          {pictures}, {seconds} s of drawing
        </b>
      </figcaption>
      <svg
        viewBox={`0 0 ${days * pitch} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Pictures of ${name} by day, over the last 30 days: at most ${most} a day`}
      >
        {all.map(({ day, images }, index) => (
          <rect
            key={day}
            class={images === 0 ? 'is-none' : undefined}
            x={index * pitch}
            width={barWidth}
            {...extent(images, most)}
          >
            <title>{`${day}: ${picturesText(images)}`}</title>
          </rect>
        ))}
      </svg>
      <details class="more">
        <summary>As a table</summary>
        <Table columns={columns} rows={all.filter(({ images }) => images > 0).reverse()} keyOf={({ day }) => day} />
      </details>
    </figure>
  );
}

/** One picture stays visible beside thousands, and none leaves a line. */
function extent(images: number, most: number): { y: number; height: number } {
  const bar = images === 0 ? 1 : Math.max(3, (images / most) * height);
  return { y: height - bar, height: bar };
}
