import { Bench, type Report } from '../torture/bench';
import { rows } from '../torture/rows';

// Scenarios mostly wait for locks to expire, so several run at once.
const atOnce = 2;
jest.setTimeout(1_800_000);

describe('the job contract holds when there is', () => {
  let bench: Bench;
  let reports: Map<string, Promise<Report>>;

  beforeAll(async () => {
    bench = await Bench.start('short');
    const running = bench.run(rows, atOnce);
    reports = new Map(rows.map(({ name }, i) => [name, running[i]]));
  });

  afterAll(async () => {
    await Promise.all(reports.values());
    await bench.close();
  });

  it.each(rows)('$name: $title', async ({ name }) => {
    const { problems, figures, log, skipped } = (await reports.get(name))!;
    // The problems come before the log, because a report may be truncated.
    if (problems.length > 0) throw new Error([...problems, log].join('\n'));
    expect(figures).toMatchObject({ duplicates: 0, lost: 0, leaked: 0, serverErrors: 0 });
    expect(figures.terminated).toBe(figures.acknowledged);
    if (!skipped) expect(figures.acknowledged).toBeGreaterThan(0);
  });
});
