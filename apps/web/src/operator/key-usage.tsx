import type { Usage } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { Loaded } from './loaded';
import { usePolled } from './polled';

const days = 30;
const dayMs = 86_400_000;
/** The usage of a day changes slowly. */
const refreshMs = 60_000;
/** Of the drawing, in its own units: a bar and the gap behind it, and the height. */
const [pitch, barWidth, height] = [10, 7, 56];

interface Day extends Pick<Usage, 'images' | 'steps' | 'compute_seconds'> {
  day: string;
}

/** The last days, the oldest first, also those without any. */
function everyDay(usage: readonly Usage[]): Day[] {
  const byDay = new Map(usage.map((each) => [each.day, each]));
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(Date.now() - (days - 1 - index) * dayMs).toISOString().slice(0, 10);
    return { day, images: 0, steps: 0, compute_seconds: 0, ...byDay.get(day) };
  });
}

/** What a key has drawn, by day: as bars, and as a table. */
export function KeyUsage({ id, name }: { id: string; name: string }) {
  const usage = usePolled(() => client().keys.usage(id), refreshMs);
  return (
    <Loaded of={usage}>
      {(found) =>
        found.length === 0 ? <p class="hint">{texts.keys.noUsage}</p> : <Plot name={name} all={everyDay(found)} />
      }
    </Loaded>
  );
}

function Plot({ name, all }: { name: string; all: readonly Day[] }) {
  const most = Math.max(1, ...all.map(({ images }) => images));
  const sum = (value: (day: Day) => number): number => all.reduce((total, day) => total + value(day), 0);
  return (
    <figure class="usage">
      <figcaption>
        <span>{texts.keys.usage}</span>
        <b>
          {texts.keys.sum(
            sum(({ images }) => images),
            Math.round(sum(({ compute_seconds }) => compute_seconds)),
          )}
        </b>
      </figcaption>
      <svg
        viewBox={`0 0 ${days * pitch} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${texts.keys.usageOf(name)}: ${texts.keys.mostOf(most)}`}
      >
        {all.map(({ day, images }, index) => (
          <rect
            key={day}
            class={images === 0 ? 'is-none' : undefined}
            x={index * pitch}
            width={barWidth}
            {...extent(images, most)}
          >
            <title>{`${day}: ${texts.live.pictures(images)}`}</title>
          </rect>
        ))}
      </svg>
      <UsageTable all={all.filter(({ images }) => images > 0).reverse()} />
    </figure>
  );
}

/** A day with one picture is seen beside one with thousands, and one without any leaves a line. */
function extent(images: number, most: number): { y: number; height: number } {
  const bar = images === 0 ? 1 : Math.max(3, (images / most) * height);
  return { y: height - bar, height: bar };
}

function UsageTable({ all }: { all: readonly Day[] }) {
  return (
    <details class="more">
      <summary>{texts.keys.table}</summary>
      <table>
        <thead>
          <tr>
            {[texts.keys.day, texts.keys.images, texts.keys.steps, texts.keys.seconds].map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {all.map(({ day, images, steps, compute_seconds }) => (
            <tr key={day}>
              <td>{day}</td>
              <td class="number">{images}</td>
              <td class="number">{steps}</td>
              <td class="number">{compute_seconds.toFixed(1)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
