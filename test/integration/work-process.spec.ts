import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { until } from '../support/until';
import { type WorkError, WorkProcess } from '@app/process';

interface Order {
  deed: string;
  data?: Uint8Array;
}
interface Echo {
  deed: string;
  data?: Uint8Array;
  pid: number;
  priority: number;
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

  it('runs each job in a process of its own, at low priority', async () => {
    const first = await work.run({ deed: 'echo', data: new Uint8Array([1, 2, 3]) });
    expect([...(first.data ?? [])]).toEqual([1, 2, 3]);
    expect(first.priority).toBe(Math.min(getPriority() + 5, 19));
    expect((await work.run({ deed: 'echo' })).pid).not.toBe(first.pid);
    await until(async () => !isAlive(first.pid), 'the first process has ended');
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

  it('reports an error', async () => {
    await expect(work.run({ deed: 'throw' })).rejects.toMatchObject({
      failure: 'failed',
      message: 'That does not work.',
    });
    expect(deaths).toEqual([]);
  });

  it.each(['sleep', 'spin'])('ends work that takes too long (%s), which harms no other', async (deed) => {
    expect(await failureOf({ deed }, 200)).toBe('time');
    expect(deaths).toHaveLength(1);
    expect((await work.run({ deed: 'echo' })).deed).toBe('echo');
  });

  it.each(['buffers', 'objects'])('ends work that takes too much memory (%s)', async (deed) => {
    expect(await failureOf({ deed })).toBe('memory');
    expect((await work.run({ deed: 'echo' })).deed).toBe('echo');
  });

  it('retries work whose process died, and fails it when the second process dies too', async () => {
    expect(await failureOf({ deed: 'exit' })).toBe('died');
    expect(deaths).toEqual(['exit code 3', 'exit code 3']);
    expect((await work.run({ deed: 'echo' })).deed).toBe('echo');
  });

  it('reports that its process cannot start', async () => {
    const broken = new WorkProcess({ file: `${file}.none`, timeMs: 30_000, heapMb: 64, residentMb: 400 });
    await expect(broken.run({})).rejects.toMatchObject({ failure: 'not started' });
    broken.close();
  });

  it('ends its process when it is closed', async () => {
    const running = failureOf({ deed: 'sleep' });
    await new Promise(setImmediate);
    work.close();
    expect(await running).toBe('closed');
    expect(await failureOf({ deed: 'echo' })).toBe('closed');
    expect(deaths).toEqual([]);
  });

  it('ends its process when the parent is killed, whatever it is doing', async () => {
    const parent = spawn(
      process.execPath,
      [
        '-e',
        `const { WorkProcess } = require('./dist/libs/process/src/work-process.js');
         const work = new WorkProcess({ file: ${JSON.stringify(file)}, timeMs: 60000, heapMb: 64, residentMb: 400 });
         work.run({ deed: 'spin' });
         const [child] = work.children;
         child.stderr.once('data', () => console.log(child.pid));`,
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
