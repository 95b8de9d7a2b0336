import { readdir, utimes } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { DatabaseContact } from '@app/database';
import { Finetune, ImageTask, newIdentifier } from '@app/domain';
import { fatalCount, LiveWorkers } from '@app/tasks';
import { jobIdOf, queueConnection, queueNames } from '@app/queue';
import { Worker } from 'bullmq';
import { FailureService } from '../../apps/inference/src/drawing/failure.service';
import { cachedMerge, mergesIn } from '../../apps/inference/src/engine/models/merge-cache';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import { MergeSweeper } from '../../apps/inference/src/sweeper/merge-sweeper';
import { fileSweepLock, Sweeper, taskSweepLock } from '../../apps/inference/src/sweeper/sweeper';
import { TaskSweeper } from '../../apps/inference/src/sweeper/task-sweeper';
import type { InferenceBench } from '../support/inference';
import { createInferenceBench, SteadyContact } from '../support/inference';

const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1000);

describe('sweeping', () => {
  let bench: InferenceBench;
  let contact: DatabaseContact;
  let tasks: TaskSweeper;
  let files: FileSweeper;

  beforeEach(async () => {
    bench = await createInferenceBench();
    const { dataSource, lifeCycle, logger, jobs, storage } = bench;
    contact = new SteadyContact();
    tasks = new TaskSweeper(dataSource, lifeCycle, new FailureService(lifeCycle, logger), logger, contact, jobs);
    files = new FileSweeper(storage, dataSource, logger);
  });

  afterEach(() => bench.close());

  const jobOf = ({ id, enqueued }: ImageTask): Promise<string> => bench.jobs.presence('images', jobIdOf(id, enqueued));

  describe(TaskSweeper.name, () => {
    it('makes a new job for a queued task without one', async () => {
      const { id } = await bench.addTask({ createdAt: ago(6) }, { withJob: false });
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 0 });
      const task = await bench.taskOf(id);
      expect(task).toMatchObject({ status: 'queued', attempt: 0, enqueued: 2 });
      expect(await jobOf(task)).toBe('waiting');
      expect(await tasks.sweep()).toEqual({ requeued: 0, ended: 0 });
    });

    it('makes a new job for a queued task whose job failed', async () => {
      const task = await bench.addTask({ createdAt: ago(6) });
      const { connection, factory } = queueConnection(bench.config, bench.databaseUrl);
      const broken = new Worker(queueNames.images, () => Promise.reject(new Error('broken')), { connection }, factory);
      await new Promise((resolve) => broken.once('failed', resolve));
      await broken.close();
      expect(await jobOf(task)).toBe('failed');
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 0 });
      expect(await jobOf(await bench.taskOf(task.id))).toBe('waiting');
    });

    it('leaves tasks alone that are recent, have a job, are being drawn or have terminated', async () => {
      await bench.addTask({}, { withJob: false });
      await bench.addTask({ createdAt: ago(60) });
      await bench.addTask({ createdAt: ago(60), status: 'processing', attempt: 9, heartbeatAt: ago(1) });
      await bench.addTask(
        { createdAt: ago(60), status: 'failed', attempt: 1, heartbeatAt: ago(60) },
        { withJob: false },
      );
      expect(await tasks.sweep()).toEqual({ requeued: 0, ended: 0 });
    });

    it('counts the jobs, whichever task each was made for', async () => {
      const tasksOf = async () => [
        await bench.addTask({ createdAt: ago(60) }),
        await bench.addTask({ createdAt: ago(50) }),
      ];
      const [first, second] = await tasksOf();
      const { connection, factory } = queueConnection(bench.config, bench.databaseUrl);
      const worker = new Worker(queueNames.images, () => Promise.resolve(), { connection, autorun: false }, factory);
      await worker.waitUntilReady();
      const job = await worker.getNextJob('token');
      expect(job?.data).toEqual({ taskId: first.id });
      // The first task's job draws the second; the second's job draws the first.
      expect(await bench.lifeCycle.claim(second.id)).toMatchObject({ kind: 'claimed' });
      expect(await tasks.sweep()).toEqual({ requeued: 0, ended: 0 });
      await job?.moveToCompleted(undefined, 'token', false);
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 0 });
      expect(await bench.taskOf(first.id)).toMatchObject({ status: 'queued', enqueued: 2 });
      expect(await tasks.sweep()).toEqual({ requeued: 0, ended: 0 });
      await worker.close();
    });

    it('checks the job that claimed an abandoned task', async () => {
      const { id: ticketed, enqueued } = await bench.addTask();
      const ticket = jobIdOf(ticketed, enqueued);
      const stale = { createdAt: ago(60), status: 'processing', attempt: 1, heartbeatAt: ago(31) } as const;
      await bench.addTask({ ...stale, ticket }, { withJob: false });
      const { id: lost } = await bench.addTask({ ...stale, ticket: 'gone' });
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 0 });
      expect(await bench.taskOf(lost)).toMatchObject({ status: 'queued', enqueued: 2, ticket: null });
    });

    it('requeues a task whose worker is gone and whose job is lost', async () => {
      const stale = { createdAt: ago(60), status: 'processing', attempt: 2, heartbeatAt: ago(31) } as const;
      const { id } = await bench.addTask(stale, { withJob: false });
      const { id: withJob } = await bench.addTask(stale);
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 0 });
      expect(await bench.taskOf(id)).toMatchObject({ status: 'queued', attempt: 2, enqueued: 2, heartbeatAt: null });
      expect(await bench.taskOf(withJob)).toMatchObject({ status: 'processing', enqueued: 1 });
    });

    it('presumes nobody dead before it has had the database for a while itself', async () => {
      const { dataSource, lifeCycle, logger, jobs } = bench;
      await bench.addTask({ status: 'processing', attempt: 1, heartbeatAt: ago(241) }, { withJob: false });
      const failures = new FailureService(lifeCycle, logger);
      const fresh = new TaskSweeper(dataSource, lifeCycle, failures, logger, new DatabaseContact(), jobs);
      // The other finds that a job is missing, whoever draws the task.
      expect(await fresh.sweep()).toEqual({ requeued: 0, ended: 0 });
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 0 });
    });

    it('fails a task that lost its worker in every attempt', async () => {
      const lost = { status: 'processing', deaths: fatalCount - 1, heartbeatAt: ago(241) } as const;
      const { id } = await bench.addTask({ ...lost, drawnAlone: true });
      expect(await tasks.sweep()).toEqual({ requeued: 0, ended: 1 });
      const task = await bench.taskOf(id);
      expect(task).toMatchObject({
        status: 'failed',
        error: expect.stringMatching(/^The picture could not be drawn/) as string,
      });
      expect(task.completedAt).not.toBeNull();
    });

    it('leaves a task to its worker that was heard again after the sweep had begun', async () => {
      const { dataSource, lifeCycle, logger } = bench;
      const found = await bench.addTask({ status: 'processing', attempt: 2, heartbeatAt: ago(241) });
      expect(await lifeCycle.heartbeat(found)).toBe(true);
      expect(await lifeCycle.requeue(found)).toBe(false);
      expect(await new FailureService(lifeCycle, logger).failAbandoned(found)).toBe(false);
      expect(await dataSource.manager.existsBy(ImageTask, { id: found.id, status: 'processing' })).toBe(true);
    });

    it('goes on after a task that cannot be moved', async () => {
      const lost = { status: 'processing', attempt: 1, heartbeatAt: ago(241) } as const;
      const [stuck, fatal, queued] = [
        await bench.addTask({ ...lost, createdAt: ago(60) }, { withJob: false }),
        await bench.addTask({ ...lost, createdAt: ago(50), deaths: fatalCount - 1, drawnAlone: true }),
        await bench.addTask({ createdAt: ago(40) }, { withJob: false }),
      ];
      await bench.dataSource.query(
        `ALTER TABLE image_tasks ADD CONSTRAINT stuck CHECK (id <> '${stuck.id}' OR status <> 'queued') NOT VALID`,
      );
      expect(await tasks.sweep()).toEqual({ requeued: 1, ended: 1 });
      expect(await bench.taskOf(fatal.id)).toMatchObject({ status: 'failed' });
      expect(await bench.taskOf(queued.id)).toMatchObject({ enqueued: 2 });
      expect(bench.logged).toContainEqual(expect.objectContaining({ msg: 'could not be swept', taskId: stuck.id }));
    });

    it('never counts a task up to the fatal number of deaths unless it was drawn alone', async () => {
      const lost = { status: 'processing', heartbeatAt: ago(241) } as const;
      const { id } = await bench.addTask({ ...lost, deaths: fatalCount - 1, ticket: 'gone' }, { withJob: false });
      const { id: fresh } = await bench.addTask({ ...lost, ticket: 'gone too' }, { withJob: false });
      const { id: alone } = await bench.addTask({ ...lost, deaths: 2, drawnAlone: true }, { withJob: false });
      expect(await tasks.sweep()).toEqual({ requeued: 3, ended: 0 });
      expect(await bench.taskOf(id)).toMatchObject({ status: 'queued', deaths: fatalCount - 1, drawnAlone: false });
      expect(await bench.taskOf(fresh)).toMatchObject({ status: 'queued', deaths: 1, drawnAlone: false });
      expect(await bench.taskOf(alone)).toMatchObject({ status: 'queued', deaths: 3, drawnAlone: false });
    });
  });

  describe(MergeSweeper.name, () => {
    it('deletes the merges of weights that no Fine-Tune has any more', async () => {
      const { config, dataSource, logger } = bench;
      const merges = mergesIn(join(config.dataDir, 'cache'));
      const made = async (weightsHash: string): Promise<string> => {
        const merge = await cachedMerge(
          merges,
          { kind: 'lora', baseHash: '', weightsHash, variant: '1' },
          async () => 1,
        );
        await utimes(join(merge, 'merge.json'), ago(120), ago(120));
        return basename(merge);
      };
      const kept = await made('of a Fine-Tune');
      await made('of none');
      await dataSource.manager.insert(Finetune, {
        ...{ id: newIdentifier(), ownerId: newIdentifier(), name: 'robot', token: 'zwx', model: 'shapes' },
        ...{ status: 'ready', createdAt: new Date(), weightsHash: 'of a Fine-Tune' },
      });
      await new MergeSweeper(config, dataSource, logger).sweep();
      expect(await readdir(merges)).toEqual([kept]);
    });
  });

  describe(Sweeper.name, () => {
    const eldest = { isEldest: async () => true };
    const sweeperWith = (presence: { isEldest(): Promise<boolean> }) =>
      new Sweeper(bench.dataSource, tasks, files, presence, bench.logger);

    /** Does something while another process has a lock. */
    async function whileLocked(lock: number, work: () => Promise<void>): Promise<void> {
      const other = bench.dataSource.createQueryRunner();
      await other.query('SELECT pg_advisory_lock($1)', [lock]);
      await work();
      await other.query('SELECT pg_advisory_unlock($1)', [lock]);
      await other.release();
    }

    it('sweeps tasks in one process at a time, also while another lists the files', async () => {
      const sweeper = sweeperWith(eldest);
      const { id } = await bench.addTask({ createdAt: ago(6) }, { withJob: false });
      await whileLocked(taskSweepLock, async () => {
        expect(await sweeper.sweepTasks()).toBe(false);
        expect(await bench.taskOf(id)).toMatchObject({ enqueued: 1 });
      });
      await whileLocked(fileSweepLock, async () => {
        expect([await sweeper.sweepFilesIfDue(), await sweeper.sweepTasks()]).toEqual([false, true]);
        expect(await bench.taskOf(id)).toMatchObject({ enqueued: 2 });
      });
      expect([await sweeperWith(eldest).sweepFilesIfDue(), await sweeper.sweepTasks()]).toEqual([true, true]);
    });

    it('sweeps files as soon as that falls to it, and then once in a quarter of an hour', async () => {
      let isEldest = false;
      const sweeper = sweeperWith({ isEldest: async () => isEldest });
      expect(await sweeper.sweepFilesIfDue()).toBe(false);
      isEldest = true;
      expect([await sweeper.sweepFilesIfDue(), await sweeper.sweepFilesIfDue()]).toEqual([true, false]);
      const now = performance.now();
      const clock = jest.spyOn(performance, 'now').mockImplementation(() => now + 15 * 60_000);
      expect([await sweeper.sweepFilesIfDue(), await sweeper.sweepFilesIfDue()]).toEqual([true, false]);
      clock.mockRestore();
    });

    it('sweeps files only in the worker that has been up for longest', async () => {
      const join = () =>
        new LiveWorkers(bench.dataSource).join(
          () => ({ devices: ['cpu'], models: [] }),
          (error) => bench.logger.error('no heartbeat', error),
        );
      const [first, second] = [await join(), await join()];
      const sweep = async () => [
        await sweeperWith(first).sweepFilesIfDue(),
        await sweeperWith(second).sweepFilesIfDue(),
      ];
      expect(await sweep()).toEqual([true, false]);
      await first.leave();
      expect(await sweep()).toEqual([false, true]);
      await second.leave();
    });
  });
});
