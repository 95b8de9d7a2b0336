import { BareGraphs } from '../bare-graphs';
import type { LinePlot } from '../plot';
import { interleave, median } from '../rounds';
import type { Section } from '../section';
import { figure } from '../section';

const counts = [1, 2, 4, 8, 12, 16];

export const rows: Section = {
  name: 'rows',
  title: 'Rows of one call',
  about:
    'Time of a row in one bare `session.run` of the U-Net, divided by its time in a call of 2 rows: what one guided picture takes. This is what sharing calls can gain.',
  rounds: 12,
  async measure(options) {
    const graphs = await BareGraphs.load(options);
    const sides = Object.fromEntries(counts.map((count) => [String(count), () => graphs.unetMs(count)]));
    const times = await interleave(sides, options.rounds);
    await graphs.release();
    const figures = counts.map((count) => {
      const ratios = times[count].map((ms, round) => ms / count / (times[2][round] / 2));
      return figure(`${count} ${count === 1 ? 'row' : 'rows'} / 2 rows`, ratios);
    });
    const plot: LinePlot = {
      kind: 'lines',
      file: 'rows.svg',
      title: 'Time of a row, by the rows of the call',
      x: 'rows of one call of the U-Net',
      y: 'time of a row (2 rows: 1)',
      xTicks: counts,
      series: [{ name: 'bare session.run', points: counts.map((count, i) => [count, figures[i].ratio]) }],
    };
    return { figures, plots: [{ ...plot, yMax: Math.max(1, median(times[1]) / (median(times[2]) / 2)) * 1.1 }] };
  },
};
