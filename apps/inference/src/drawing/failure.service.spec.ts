import { ImageTask } from '@app/domain';
import type { ImageTaskLifeCycle, Settlement } from '@app/image-tasks';
import { maxAttempts } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import { DrawingAbortedError, DrawingRefusedError, EngineBrokenError } from '../engine/engine';
import { FailureService } from './failure.service';
import { TaskRefusedError } from './task-refused-error';

class FakeLifeCycle {
  readonly calls: unknown[] = [];

  async settle(_task: unknown, { status, error }: Settlement): Promise<boolean> {
    this.calls.push({ [status]: error });
    return true;
  }

  async release(_task: unknown, options?: { delayMs: number }): Promise<boolean> {
    this.calls.push({ released: options?.delayMs ?? 0 });
    return true;
  }
}

describe(FailureService.name, () => {
  let lifeCycle: FakeLifeCycle;
  let failures: FailureService;

  beforeEach(() => {
    lifeCycle = new FakeLifeCycle();
    failures = new FailureService(lifeCycle as unknown as ImageTaskLifeCycle, new JsonLogger('test', 'silent'));
  });

  const task = (attempt: number): ImageTask => Object.assign(new ImageTask(), { id: 'task', attempt });
  const held = { lost: false, signal: new AbortController().signal };
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });

  it.each([new TaskRefusedError('The model x is not installed.'), new DrawingRefusedError('The width is 500.')])(
    "fails a task at once, with the error's message, if it would fail again: %s",
    async (error) => {
      await failures.handle(task(1), error, held);
      expect(lifeCycle.calls).toEqual([{ failed: error.message }]);
    },
  );

  it('writes nothing for a task that is lost', async () => {
    await failures.handle(task(1), new DrawingAbortedError('aborted'), { lost: true, signal: AbortSignal.abort() });
    expect(lifeCycle.calls).toEqual([]);
  });

  it('gives a task back at once when the process ends', async () => {
    await failures.handle(task(1), new DrawingAbortedError('aborted'), { lost: false, signal: AbortSignal.abort() });
    expect(lifeCycle.calls).toEqual([{ released: 0 }]);
  });

  it('waits longer before each further attempt', async () => {
    for (let attempt = 1; attempt < maxAttempts; attempt++) await failures.handle(task(attempt), full, held);
    expect(lifeCycle.calls).toEqual([2_000, 4_000, 8_000, 16_000].map((released) => ({ released })));
  });

  it('reports the cause after the last attempt, without internals of the service', async () => {
    for (const error of [full, new EngineBrokenError('bad_alloc'), new Error('/srv/x.js:12 is undefined')])
      await failures.handle(task(maxAttempts), error, held);
    expect(lifeCycle.calls).toEqual([
      { failed: 'The picture could not be stored: the storage is full.' },
      { failed: 'The picture could not be drawn: the engine broke in 5 tries.' },
      { failed: 'The picture could not be made in 5 tries because of an internal error.' },
    ]);
  });
});
