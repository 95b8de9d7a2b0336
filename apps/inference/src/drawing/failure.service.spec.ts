import { type DrawingTask, Task } from '@app/domain';
import { fatalCount, type Settlement, type Tasks } from '@app/tasks';
import { ModerationDownError } from '@app/moderation';
import { JsonLogger } from '@app/observability';
import { StorageUnavailableError } from '@app/storage';
import { EngineBrokenError, EngineLostError, TaskAbortedError, TaskRefusedError } from '../engine-client/task-errors';
import { FailureService } from './failure.service';

class FakeLifeCycle {
  readonly calls: unknown[] = [];

  async settle(_task: unknown, { status, error }: Settlement): Promise<boolean> {
    this.calls.push({ [status]: error });
    return true;
  }

  readonly charged: number[] = [];

  async chargeLost(_task: unknown, seconds: number): Promise<void> {
    this.charged.push(seconds);
  }

  async release(_task: unknown, { delayMs = 0, because }: Parameters<Tasks['release']>[1] = {}) {
    this.calls.push({ released: delayMs, ...(because && { because }) });
    return true;
  }
}

describe(FailureService.name, () => {
  let tasks: FakeLifeCycle;
  let failures: FailureService;
  let lines: string[];

  beforeEach(() => {
    tasks = new FakeLifeCycle();
    lines = [];
    const logger = new JsonLogger('test', 'info', { write: (line) => void lines.push(line) });
    failures = new FailureService(tasks as unknown as Tasks, logger, {
      isAtFault: async (error) => error === full,
    });
  });

  /** The attempts do not count: a worker that ends in order gives its tasks back, and neighbours may crash it. */
  const task = (values: Partial<DrawingTask> = {}): DrawingTask =>
    Object.assign(
      new Task() as DrawingTask,
      { id: 'task', attempt: 50, failures: 0, deaths: 0, drawnAlone: false },
      values,
    );
  const lost = new EngineLostError("The engine's thread ended with code 1.");
  const held = { lost: false, signal: new AbortController().signal, usedSeconds: 0 };
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });

  it("fails a task at once, with the error's message, if it would fail again", async () => {
    await failures.handle(task(), new TaskRefusedError('The width is 500.'), held);
    expect(tasks.calls).toEqual([{ failed: 'The width is 500.' }]);
  });

  it('keeps to itself what the caller of a sandbox wants a task to fail with', async () => {
    await failures.handle(task({ sandbox: true }), new TaskRefusedError('Out of paint.'), held);
    await failures.handle(task(), new TaskRefusedError('The width is 500.'), held);
    const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(told.map(({ msg, reason }) => [msg, reason])).toEqual([
      ['failed', undefined],
      ['failed', 'The width is 500.'],
    ]);
  });

  it('writes nothing for a task that is lost, but what it used', async () => {
    const lost = { lost: true, signal: AbortSignal.abort(), usedSeconds: 2.5 };
    await failures.handle(task(), new TaskAbortedError('aborted'), lost);
    expect([tasks.calls, tasks.charged]).toEqual([[], [2.5]]);
  });

  it('gives a task back at once when the process ends', async () => {
    await failures.handle(task(), new TaskAbortedError('aborted'), { ...held, signal: AbortSignal.abort() });
    expect(tasks.calls).toEqual([{ released: 0 }]);
  });

  it('logs why a task is given back, which need not be that the process ends', async () => {
    await failures.handle(task(), new TaskAbortedError('The device cuda:0 cannot be used any more.'), held);
    expect(tasks.calls).toEqual([{ released: 0 }]);
    const [line] = lines.map((each) => JSON.parse(each) as Record<string, unknown>);
    expect(line).toMatchObject({ msg: 'given back', reason: 'The device cuda:0 cannot be used any more.' });
  });

  it('waits longer before each further try', async () => {
    for (let tries = 0; tries < fatalCount - 1; tries++)
      await failures.handle(task({ failures: tries }), new Error('x'), held);
    const waits = [2_000, 4_000, 8_000, 16_000];
    expect(tasks.calls).toEqual(waits.map((released) => ({ released, because: 'failed' })));
  });

  it('gives a task back, however often, that the storage does not take, and counts no failure', async () => {
    await failures.handle(task({ failures: fatalCount - 1 }), full, held);
    expect(tasks.calls).toEqual([{ released: 5_000 }]);
  });

  it('gives a task back that cannot be looked at, as often as it takes', async () => {
    await failures.handle(task({ failures: fatalCount - 1 }), new ModerationDownError('It answers 500.'), held);
    expect(tasks.calls).toEqual([{ released: 30_000 }]);
  });

  it('counts the loss of the process that trains as a failure of the training, and of no worker', async () => {
    await failures.handle(task({ kind: 'training', deaths: fatalCount - 1, drawnAlone: true }), lost, held);
    expect(tasks.calls).toEqual([{ released: 2_000, because: 'failed' }]);
  });

  it('counts the loss of an engine against a task that was drawn alone, and against others only as a suspicion', async () => {
    await failures.handle(task({ failures: fatalCount - 1 }), lost, held);
    await failures.handle(task({ deaths: fatalCount - 1 }), lost, held);
    await failures.handle(task({ deaths: fatalCount - 2, drawnAlone: true }), lost, held);
    await failures.handle(task({ deaths: fatalCount - 1, drawnAlone: true }), lost, held);
    expect(tasks.calls).toEqual([
      { released: 2_000, because: 'died' },
      { released: 16_000, because: 'died' },
      { released: 16_000, because: 'died' },
      { failed: 'The picture could not be drawn: the engine broke in 5 tries.' },
    ]);
  });

  it('reports the cause after the last try, without internals of the service', async () => {
    const away = new StorageUnavailableError('403', false);
    for (const error of [away, new EngineBrokenError('bad_alloc'), new Error('/srv/x.js:12 is undefined')])
      await failures.handle(task({ failures: fatalCount - 1 }), error, held);
    expect(tasks.calls).toEqual([
      { failed: 'The picture could not be stored: the storage could not be reached.' },
      { failed: 'The picture could not be drawn: the engine broke in 5 tries.' },
      { failed: 'The picture could not be made in 5 tries because of an internal error.' },
    ]);
  });
});
