import type { Activity } from '../service/client';
import { seriesOf } from './usage-series';

const hour = 3600;
const now = Date.parse('2026-11-20T10:30:00Z') / 1000;
const row = (model: string, hoursAgo: number, images: number): Activity => ({
  time: new Date((Math.floor(now / hour) - hoursAgo) * hour * 1000).toISOString(),
  ...{ model, images, succeeded: 1, failed: 0, canceled: 0, compute_seconds: 1, queue_seconds: 2 },
});
const plot = (rows: Activity[]) =>
  seriesOf(rows, { per: 'hour', measure: 'images', nameOf: ({ model }) => model ?? '' }, now);

describe('The lines of usage', () => {
  it('have a value for each hour, of which the last is the present one', () => {
    const { times, series } = plot([row('a', 0, 3), row('a', 2, 1), row('b', 48, 9), row('b', 60, 1)]);
    expect([times.length, times.at(-1)]).toEqual([49, Math.floor(now / hour) * hour]);
    expect(series.map(({ name, total }) => [name, total])).toEqual([
      ['b', 9],
      ['a', 4],
    ]);
    expect([series[0].values[0], series[1].values.slice(-3)]).toEqual([9, [1, 0, 3]]);
  });

  it('are the largest, and one of all others together', () => {
    const { series } = plot(Array.from({ length: 9 }, (_, index) => row(`m${index}`, 1, index + 1)));
    expect(series.map(({ name, total }) => [name, total])).toEqual([
      ...[8, 7, 6, 5, 4].map((index) => [`m${index}`, index + 1]),
      ['4 others', 10],
    ]);
  });
});
