import { ClockWatch } from '@app/database';
import type { INestApplicationContext } from '@nestjs/common';
import { itOnce } from '../support/back-ends';
import { createInferenceBench } from '../support/inference';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';
import { startWorker } from '../support/worker';

interface Ready {
  status: string;
  checks: Record<string, boolean>;
}

describe('the health of a worker', () => {
  const bench = ofSuite(createInferenceBench);
  let worker: INestApplicationContext;
  /** How far the worker's clock is ahead, in milliseconds. */
  let ahead = 60_000;

  beforeAll(async () => {
    worker = await startWorker(bench, { now: () => Date.now() + ahead });
  });

  const ask = (path: string): Promise<Response> => {
    const line = bench.logged.find(({ msg }) => msg === 'inference is ready');
    return fetch(`http://127.0.0.1:${line?.healthPort as number}${path}`);
  };
  /** Waits until the response has this status and these checks: on a busy machine a check may time out. */
  const ready = (status: number, checks: Record<string, boolean>): Promise<unknown> =>
    until(
      async () => {
        const response = await ask('/health/ready');
        const body = (await response.json()) as Ready;
        return response.status === status && Object.entries(checks).every(([name, is]) => body.checks[name] === is);
      },
      `it answers ${status} with ${JSON.stringify(checks)}`,
    );

  it('claims nothing while its clock is wrong, logs that, and continues when the clock is right', async () => {
    const { id } = await bench.addTask();
    expect(bench.logged).toContainEqual(
      expect.objectContaining({
        msg: expect.stringMatching(/^The clock is [56]\d\.\d s ahead/) as string,
        agrees: false,
      }),
    );
    await ready(503, { clock: false, database: true });
    expect((await ask('/health/live')).status).toBe(200);
    expect((await bench.taskOf(id)).status).toBe('queued');
    ahead = 0;
    await worker.get(ClockWatch).check();
    expect((await bench.terminated(id)).status).toBe('succeeded');
    // Nothing was claimed before the clock was right.
    const lines = bench.logged.map(({ msg }) => msg);
    const corrected = lines.findIndex((msg) => msg.startsWith('The clock agrees'));
    expect(corrected).toBeGreaterThan(0);
    expect(lines.indexOf('drawing')).toBeGreaterThan(corrected);
    await ready(200, { clock: true, database: true, engine: true, queue: true, storage: true });
  });

  itOnce('pauses when the clock becomes wrong later', async () => {
    ahead = -60_000;
    await worker.get(ClockWatch).check();
    const { id } = await bench.addTask();
    await ready(503, { clock: false });
    ahead = 0;
    await worker.get(ClockWatch).check();
    expect((await bench.terminated(id)).status).toBe('succeeded');
  });

  itOnce('measures steps, batches, loads and drawings', async () => {
    const { id } = await bench.addTask({ numImages: 2, steps: 2 });
    await bench.terminated(id);
    const response = await ask('/metrics');
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    const text = await response.text();
    const valueOf = (name: string): number =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
    expect(valueOf('darkroom_step_seconds_count')).toBeGreaterThanOrEqual(8);
    expect(valueOf('darkroom_step_seconds_sum')).toBeGreaterThan(0);
    expect(valueOf('darkroom_batch_pictures_sum')).toBeGreaterThan(valueOf('darkroom_batch_pictures_count'));
    expect(valueOf('darkroom_model_loads_total')).toBeGreaterThanOrEqual(1);
    expect(valueOf('darkroom_drawings_total')).toBeGreaterThanOrEqual(3);
    expect(text).toMatch(/^darkroom_drawings_total\{outcome="failed"\} 0$/m);
    expect(text).toMatch(/^darkroom_ready\{check="engine"\} 1$/m);
    expect(valueOf('darkroom_disk_free_bytes')).toBeGreaterThan(0);
    expect(valueOf('darkroom_compute_seconds_total')).toBeGreaterThan(0);
    expect(text).toMatch(/^process_resident_memory_bytes /m);
  });

  it('is not ready when it cannot store pictures', async () => {
    const other = await createInferenceBench();
    await startWorker(other);
    try {
      await other.backEnds.storage.breakDown();
      const { healthPort } = await until(
        async () => other.logged.find(({ msg }) => msg === 'inference is ready'),
        'it listens',
      );
      const response = await fetch(`http://127.0.0.1:${healthPort as number}/health/ready`);
      expect(response.status).toBe(503);
      expect((await response.json()) as Ready).toMatchObject({ checks: { storage: false, database: true } });
    } finally {
      await other.close();
    }
  });
});
