import type { Activity } from '../service/client';

export const spans = {
  hour: { stepSeconds: 3600, steps: 49 },
  day: { stepSeconds: 86_400, steps: 31 },
} as const;
export type Per = keyof typeof spans;

/** What is plotted of a row, and its unit. */
export const measures = {
  images: { title: 'Pictures', of: ({ images }: Activity) => images },
  compute: { title: 'Compute (s)', of: ({ compute_seconds: seconds }: Activity) => seconds },
  waiting: { title: 'Waiting (s)', of: ({ queue_seconds: seconds }: Activity) => seconds },
  failures: { title: 'Failures', of: ({ failed }: Activity) => failed },
} as const;
export type Measure = keyof typeof measures;

export interface Series {
  name: string;
  values: number[];
  total: number;
}

/** Lines that one can tell apart; the smaller ones are one line together. */
const mostLines = 6;

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/**
 * A line for each name, the largest first.
 * @param now in seconds since the epoch
 */
export function seriesOf(
  rows: readonly Activity[],
  { per, measure, nameOf }: { per: Per; measure: Measure; nameOf: (row: Activity) => string },
  now: number,
): { times: number[]; series: Series[] } {
  const { stepSeconds, steps } = spans[per];
  const last = Math.floor(now / stepSeconds);
  const times = Array.from({ length: steps }, (_, index) => (last - steps + 1 + index) * stepSeconds);
  const lines = new Map<string, number[]>();
  for (const row of rows) {
    const name = nameOf(row);
    const values = lines.get(name) ?? times.map(() => 0);
    lines.set(name, values);
    const at = steps - 1 - (last - Date.parse(row.time) / 1000 / stepSeconds);
    if (at >= 0 && at < steps) values[at] += measures[measure].of(row);
  }
  const all = [...lines].map(([name, values]) => ({ name, values, total: sumOf(values) }));
  all.sort((a, b) => b.total - a.total);
  if (all.length <= mostLines) return { times, series: all };
  const others = all.slice(mostLines - 1);
  const values = times.map((_, index) => sumOf(others.map((line) => line.values[index])));
  const rest = { name: `${others.length} others`, values, total: sumOf(values) };
  return { times, series: [...all.slice(0, mostLines - 1), rest] };
}
