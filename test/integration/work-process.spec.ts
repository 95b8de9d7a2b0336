import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { until } from '../support/until';
import type { WorkError } from '../../apps/api/src/defence/work-process';
import { WorkProcess } from '../../apps/api/src/defence/work-process';

interface Order {
  deed: string;
  data?: Uint8Array;
}
interface Echo {
  deed: string;
  data?: Uint8Array;
  pid: number;
}

const file = join(process.cwd(), 'test', 'support', 'work-child.cjs');

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe(WorkProcess.name, () => {
  let deaths: string[];
  let work: WorkProcess<Order, Echo>;

  beforeEach(() => {
    deaths = [];
    work = new WorkProcess({
      name: 'test',
      file,
      timeMs: 120_000,
      heapMb: 64,
      residentMb: 400,
      onDeath: (reason) => deaths.push(reason),
    });
  });

  afterEach(() => work.close());

  const failureOf = (order: Order, timeMs?: number): Promise<string> =>
    work.run(order, timeMs).then(
      () => 'none',
      (error: WorkError) => error.failure,
    );

  it('starts with the first job, at low priority, and runs the next ones in the same process', async () => {
    expect(work.pid).toBeUndefined();
    const first = await work.run({ deed: 'echo', data: new Uint8Array([1, 2, 3]) });
    expect([...(first.data ?? [])]).toEqual([1, 2, 3]);
    expect(first.pid).toBe(work.pid);
    expect(getPriority(first.pid)).toBe(Math.min(getPriority() + 5, 19));
    expect((await work.run({ deed: 'echo' })).pid).toBe(first.pid);
    expect(deaths).toEqual([]);
  });

  it('knows none of the secrets of its parent', async () => {
    process.env.S3_SECRET_ACCESS_KEY = 'secret';
    try {
      const environment = Object.keys(await work.run({ deed: 'environment' }));
      expect(environment).toContain('UV_THREADPOOL_SIZE');
      expect(environment).not.toContain('S3_SECRET_ACCESS_KEY');
    } finally {
      delete process.env.S3_SECRET_ACCESS_KEY;
    }
  });

  it('reports an error, and continues', async () => {
    const { pid } = await work.run({ deed: 'echo' });
    await expect(work.run({ deed: 'throw' })).rejects.toMatchObject({
      failure: 'failed',
      message: 'That does not work.',
    });
    expect((await work.run({ deed: 'echo' })).pid).toBe(pid);
  });

  it.each(['sleep', 'spin'])('ends work that takes too long (%s), and restarts', async (deed) => {
    const { pid } = await work.run({ deed: 'echo' });
    expect(await failureOf({ deed }, 200)).toBe('time');
    const next = await work.run({ deed: 'echo' });
    expect(next.pid).not.toBe(pid);
    expect(isAlive(pid)).toBe(false);
    expect(deaths).toHaveLength(1);
  });

  it.each(['buffers', 'objects'])('ends work that takes too much memory (%s)', async (deed) => {
    expect(await failureOf({ deed })).toBe('memory');
    expect((await work.run({ deed: 'echo' })).deed).toBe('echo');
  });

  it('restarts at once after work that took too long, however often', async () => {
    for (let n = 0; n < 8; n++) expect(await failureOf({ deed: 'sleep' }, 1)).toBe('time');
    const startedAt = performance.now();
    await work.run({ deed: 'echo' });
    // After that many deaths of another kind it would wait for ten seconds first.
    expect(performance.now() - startedAt).toBeLessThan(8_000);
  });

  it('retries work whose process died, and fails it when the second process dies too', async () => {
    expect(await failureOf({ deed: 'exit' })).toBe('died');
    expect(deaths).toEqual(['exit code 3', 'exit code 3']);
    expect((await work.run({ deed: 'echo' })).deed).toBe('echo');
  });

  it('completes a job although its process is killed', async () => {
    const { pid } = await work.run({ deed: 'echo' });
    process.kill(pid, 'SIGKILL');
    expect((await work.run({ deed: 'echo' })).pid).not.toBe(pid);
  });

  it('reports that its process cannot start', async () => {
    const broken = new WorkProcess({ name: 'test', file: `${file}.none`, timeMs: 30_000, heapMb: 64, residentMb: 400 });
    await expect(broken.run({})).rejects.toMatchObject({ failure: 'not started' });
    broken.close();
  });

  it('ends an idle process', async () => {
    work = new WorkProcess({ name: 'test', file, timeMs: 30_000, heapMb: 64, residentMb: 400, idleMs: 50 });
    const { pid } = await work.run({ deed: 'echo' });
    await until(async () => !isAlive(pid), 'the idle process has ended');
    expect((await work.run({ deed: 'echo' })).pid).not.toBe(pid);
  });

  it('ends its process when it is closed', async () => {
    const { pid } = await work.run({ deed: 'echo' });
    const running = failureOf({ deed: 'sleep' });
    await new Promise(setImmediate);
    work.close();
    expect(await running).toBe('closed');
    expect(await failureOf({ deed: 'echo' })).toBe('closed');
    await until(async () => !isAlive(pid), 'the process has ended');
    expect(deaths).toEqual([]);
  });

  it('ends its process when the parent is killed, whatever it is doing', async () => {
    const parent = spawn(
      process.execPath,
      [
        '-e',
        `const { WorkProcess } = require('./dist/apps/api/src/defence/work-process.js');
         const work = new WorkProcess({ name: 't', file: ${JSON.stringify(file)}, timeMs: 60000, heapMb: 64, residentMb: 400 });
         work.run({ deed: 'echo' }).then(({ pid }) => { console.log(pid); work.run({ deed: 'spin' }); setInterval(() => {}, 1000); });`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [chunk] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(chunk.toString());
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await until(async () => !isAlive(pid), 'the child has ended');
  });
});
