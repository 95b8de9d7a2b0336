import { DatabaseContact } from '@app/database';
import { Collection, Image, newIdentifier, Style, Task } from '@app/domain';
import { fatalCount, LiveWorkers, Tasks, TaskSweep } from '@app/tasks';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import { fileSweepLock, Sweeper } from '../../apps/inference/src/sweeper/sweeper';
import { createInferenceBench } from '../support/inference';
import { insertFinetune, insertPicture, insertPrompt } from '../support/prompt-rows';
import { ofTest } from '../support/of-suite';

const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1000);

describe('sweeping', () => {
  const bench = ofTest(createInferenceBench);
  let files: FileSweeper;

  beforeEach(async () => {
    const { dataSource, logger, storage } = bench;
    files = new FileSweeper(storage, dataSource, logger);
  });

  describe(TaskSweep.name, () => {
    const lost = { status: 'processing', attempt: 1, heartbeatAt: ago(241) } as const;

    it('leaves tasks alone that wait, are being drawn or have terminated', async () => {
      const left = [
        await bench.addTask({ createdAt: ago(60) }),
        await bench.addTask({ status: 'processing', attempt: 9, heartbeatAt: ago(1) }),
        await bench.addTask({ status: 'failed', attempt: 1, heartbeatAt: ago(60) }),
      ];
      await bench.sweep.sweep();
      for (const { id, status, attempt } of left) expect(await bench.taskOf(id)).toMatchObject({ status, attempt });
    });

    it('presumes nobody dead before it has had the database for a while itself', async () => {
      const { dataSource, transactions, logger } = bench;
      const { id } = await bench.addTask(lost);
      const fresh = new TaskSweep(dataSource, new Tasks(transactions, new DatabaseContact()), logger);
      expect(await fresh.sweep()).toBe(true);
      expect(await bench.taskOf(id)).toMatchObject({ status: 'processing' });
      await bench.sweep.sweep();
      expect(await bench.taskOf(id)).toMatchObject({ status: 'queued', attempt: 1, heartbeatAt: null });
    });

    it('fails a task that lost its worker in every attempt', async () => {
      const { id } = await bench.addTask({ ...lost, deaths: fatalCount - 1, drawnAlone: true });
      await bench.sweep.sweep();
      const error = expect.stringMatching(/^The picture could not be drawn/) as string;
      expect(await bench.taskOf(id)).toMatchObject({ status: 'failed', error });
      expect((await bench.taskOf(id)).completedAt).not.toBeNull();
    });

    it('leaves a task to its worker that was heard again after the sweep had begun', async () => {
      const found = await bench.addTask(lost);
      expect(await bench.tasks.heartbeat(found)).toBe(true);
      expect(await bench.tasks.endSilent(found, undefined)).toBe(false);
      expect(await bench.tasks.endSilent(found, 'dead')).toBe(false);
      expect(await bench.taskOf(found.id)).toMatchObject({ status: 'processing' });
    });

    it('goes on after a task that cannot be moved', async () => {
      const stuck = await bench.addTask({ ...lost, heartbeatAt: ago(300) });
      const fatal = await bench.addTask({ ...lost, deaths: fatalCount - 1, drawnAlone: true });
      await bench.dataSource.query(
        `ALTER TABLE tasks ADD CONSTRAINT stuck CHECK (id <> '${stuck.id}' OR status <> 'queued') NOT VALID`,
      );
      await bench.sweep.sweep();
      expect(await bench.taskOf(fatal.id)).toMatchObject({ status: 'failed' });
      expect(bench.logged).toContainEqual(expect.objectContaining({ msg: 'could not be swept', taskId: stuck.id }));
    });

    it('never counts a task up to the fatal number of deaths unless it was drawn alone', async () => {
      const { id } = await bench.addTask({ ...lost, deaths: fatalCount - 1 });
      const { id: fresh } = await bench.addTask(lost);
      const { id: alone } = await bench.addTask({ ...lost, deaths: 2, drawnAlone: true });
      await bench.sweep.sweep();
      expect(await bench.taskOf(id)).toMatchObject({ status: 'queued', deaths: fatalCount - 1, drawnAlone: false });
      expect(await bench.taskOf(fresh)).toMatchObject({ status: 'queued', deaths: 1, drawnAlone: false });
      expect(await bench.taskOf(alone)).toMatchObject({ status: 'queued', deaths: 3, drawnAlone: false });
    });

    it('counts each death against a training, of which more are fatal, because drawings beside it cause some', async () => {
      const { manager } = bench.dataSource;
      const [innocent, fatal] = [fatalCount, 2 * fatalCount - 1].map((deaths) => ({ ...lost, deaths }));
      const ids: string[] = [];
      for (const values of [innocent, fatal]) ids.push((await bench.addTask(values)).id);
      await manager.update(Task, ids, { kind: 'training' });
      await bench.sweep.sweep();
      const [first, second] = await Promise.all(ids.map((id) => manager.findOneByOrFail(Task, { id })));
      expect(first).toMatchObject({ status: 'queued', deaths: fatalCount + 1 });
      expect(second).toMatchObject({ status: 'failed', error: expect.stringContaining('in 10 tries') as string });
    });
  });

  describe(FileSweeper.name, () => {
    /** Stores a file with the given age. */
    async function file(key: string, date = ago(3600)): Promise<string> {
      await bench.storage.write(key, Buffer.from('x'));
      await bench.backEnds.storage.age(key, date);
      return key;
    }

    it('removes old files of attempts without a row', async () => {
      await file(`${newIdentifier()}/1/0.png`);
      const { id } = await bench.addTask({ status: 'succeeded', attempt: 2 });
      await file(`${id}/1/0.png.0a1b2c.part`);
      const kept = await file(`${id}/2/0.png`);
      await bench.dataSource.manager.insert(Image, {
        id: newIdentifier(),
        taskId: id,
        index: 0,
        token: newIdentifier(),
        storageKey: `${id}/2/0.png`,
        contentType: 'image/png',
        width: 1,
        height: 1,
        bytes: 1,
      });
      expect(await files.sweep()).toBe(2);
      expect(await bench.backEnds.storage.contents()).toEqual([kept]);
    });

    it('keeps recent files, those of tasks being drawn, and files other than pictures', async () => {
      const { id } = await bench.addTask({ status: 'processing', attempt: 3, heartbeatAt: new Date() });
      const kept = [
        await file(`${newIdentifier()}/1/0.png`, ago(60)),
        await file(`${id}/3/0.png`),
        await file(`thumbnails/${id}/3/0.png`),
        await file(`thumbnails/${newIdentifier()}.png`),
        await file(`weights/${newIdentifier()}/1/lora.safetensors`),
      ];
      expect(await files.sweep()).toBe(0);
      expect(await bench.backEnds.storage.contents()).toEqual(kept.sort());
    });

    it('removes old thumbnails that neither a Prompt nor a Style needs', async () => {
      const { manager } = bench.dataSource;
      const finetune = await insertFinetune(manager, newIdentifier());
      const { id } = await insertPrompt(manager, finetune);
      await insertPicture(manager, bench.storage, id);
      const [style, collectionId] = [newIdentifier(), newIdentifier()];
      const [gone, kept] = [newIdentifier(), newIdentifier()];
      const thumbnailKey = await file(`thumbnails/${kept}/2/0.png`);
      await manager.insert(Collection, {
        id: collectionId,
        ownerId: finetune.ownerId,
        name: '',
        createdAt: new Date(),
      });
      const row = { id: style, ownerId: finetune.ownerId, collectionId, name: '', template: '', createdAt: new Date() };
      await manager.insert(Style, { ...row, sourcePromptId: kept, thumbnailKey });
      for (const key of [`${kept}/1/0.png`, `${gone}/1/0.png`, `${id}/2/0.png`, `${id}/1/0.png.0a1b.part`])
        await file(`thumbnails/${key}`);
      for (const key of [`${id}/1/0.png`, `thumbnails/${id}/1/0.png`]) await bench.backEnds.storage.age(key, ago(3600));
      await files.sweep();
      expect(await bench.backEnds.storage.contents()).toEqual(
        [`${id}/1/0.png`, `thumbnails/${id}/1/0.png`, `thumbnails/${id}/1/0.png.0a1b.part`, thumbnailKey].sort(),
      );
    });

    it('has nothing to do with an empty storage', async () => {
      expect(await files.sweep()).toBe(0);
    });
  });

  describe(Sweeper.name, () => {
    const eldest = { isEldest: async () => true };
    const sweeperWith = (presence: { isEldest(): Promise<boolean> }) =>
      new Sweeper(bench.dataSource, files, presence, bench.logger);

    /** Does something while another process has a lock. */
    async function whileLocked(lock: number, work: () => Promise<void>): Promise<void> {
      const other = bench.dataSource.createQueryRunner();
      await other.query('SELECT pg_advisory_lock($1)', [lock]);
      await work();
      await other.query('SELECT pg_advisory_unlock($1)', [lock]);
      await other.release();
    }

    it('sweeps in one process at a time, tasks also while another lists the files', async () => {
      const sweeper = sweeperWith(eldest);
      await whileLocked(fileSweepLock, async () => {
        expect([await sweeper.sweepFilesIfDue(), await bench.sweep.sweep()]).toEqual([false, true]);
      });
      expect(await sweeperWith(eldest).sweepFilesIfDue()).toBe(true);
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
