import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { maxAttempts, nextWaitMs } from '../../apps/api/src/webhooks/retry-schedule';

const read = (page: string) => readFileSync(join(__dirname, '..', '..', page), 'utf8');
const results = read('bench/results/README.md');

/** The median of a row in a section of the bench's page. */
function measured(section: string, row: string): number {
  const [, text = ''] = results.split(`\n## ${section}\n`);
  const [part] = text.split('\n## ');
  const line = part.split('\n').find((each) => each.startsWith(`| ${row} | `));
  if (!line) throw new Error(`The bench's page has no row "${row}" in "${section}".`);
  return Number.parseFloat(line.split(' | ')[1]);
}

const [eight, arrivals, start] = ['Eight requests at once', 'Arrivals at random', 'Start'];
const faster = 'one at a time / the engine: how much faster';

/** Where a page has a figure, and what it is rounded from. */
const figures: readonly [page: string, figure: RegExp, section: string, row: string][] = [
  ['README.md', /done ([\d.]+) times as fast as one after another/, eight, faster],
  ['docs/sizing.md', /eight were ([\d.]+) times as fast on two cores/, eight, faster],
  ['docs/sizing.md', /or ([\d.]+) times without decoding/, eight, 'the same, without decoding'],
  [
    'docs/sizing.md',
    /on average ([\d.]+) of what it is in a queue/,
    arrivals,
    'mean latency: the engine / one at a time',
  ],
  [
    'docs/sizing.md',
    /\| ([\d.]+) times as long as alone/,
    'A short request behind long ones',
    'behind eight of 50 steps / alone',
  ],
  [
    'docs/sizing.md',
    /first picture takes ([\d.]+) times/,
    start,
    'process start to first picture, empty cache / a picture',
  ],
  [
    'docs/sizing.md',
    /or ([\d.]+) times if the model was loaded/,
    start,
    'process start to first picture, full cache / a picture',
  ],
  ['docs/sizing.md', /a row alone takes ([\d.]+) times/, 'Rows of one call', '1 row / 2 rows'],
];

describe('The figures of the pages', () => {
  it.each(figures)('in %s are those of the bench: %s', (page, figure, section, row) => {
    const [, found] = figure.exec(read(page)) ?? [];
    const digits = found?.split('.')[1].length ?? 0;
    expect(found).toBe(measured(section, row).toFixed(digits));
  });

  it('has the waits between the attempts of a webhook', () => {
    const [, told = ''] = /The waits between them are (.*), each up to a tenth/.exec(read('docs/webhooks.md')) ?? [];
    const unitsMs: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000 };
    const waits = told.split(/, | and /).map((wait) => {
      const [count, unit] = wait.split(' ');
      return Number(count) * unitsMs[unit];
    });
    expect(waits).toEqual(Array.from({ length: maxAttempts - 1 }, (_, at) => nextWaitMs(at + 1, 0, 0.5)));
  });

  it('has what the loop around the denoiser adds', () => {
    const [, percent] = /takes (\d+) % more than\s+the denoiser itself/.exec(read('README.md')) ?? [];
    const loop = measured('The library’s own loop', '1 picture: loop / session.run');
    expect(Number(percent)).toBe(Math.round((loop - 1) * 100));
  });
});
