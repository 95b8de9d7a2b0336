import { Task, newIdentifier } from '@app/domain';
import { StorageQuota, TaskIntake } from '@app/tasks';
import { createInferenceBench } from '../support/inference';
import { newTask as task } from '../support/new-task';
import { typicalMs } from '../support/typical-ms';
import { ofTest } from '../support/of-suite';

describe(TaskIntake.name, () => {
  const bench = ofTest(createInferenceBench);

  const insert = (ownerId: string, tasks = [task(ownerId)], { maxQueued = 0, intake = bench.intake } = {}) =>
    intake.insert({ ownerId, maxQueued, tasks });
  const count = (ownerId: string) => bench.dataSource.manager.countBy(Task, { ownerId });

  it('writes every column of a task', async () => {
    const given = task('a', {
      finetuneId: newIdentifier(),
      negativePrompt: 'a cat',
      scheduler: 'ddim',
      promptChunks: 2,
      seed: 4294967295,
      cfg: 1.5,
      aspectRatio: 'landscape',
      highResolution: true,
      outputFormat: 'webp',
      promptWeighting: true,
      numImages: 3,
      sandbox: true,
    });
    await insert('a', [given]);
    expect(await bench.taskOf(given.id)).toMatchObject(given);
  });

  it('fails a bad request alone', async () => {
    const owner = newIdentifier();
    const twice = task(owner);
    await insert(owner, [twice]);
    const others = Array.from({ length: 10 }, () => newIdentifier());
    const [bad, ...good] = await Promise.allSettled([insert(owner, [twice]), ...others.map((other) => insert(other))]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: '23505' } });
    expect(good.map(({ status }) => status)).toEqual(others.map(() => 'fulfilled'));
    expect((await insert(owner)).accepted).toBe(true);
  });

  it('delays nobody else when an owner’s row is locked', async () => {
    const [locked, other] = [newIdentifier(), newIdentifier()];
    await bench.dataSource.query('INSERT INTO fair_shares (owner_id) VALUES ($1)', [locked]);
    const holder = bench.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT 1 FROM fair_shares WHERE owner_id = $1 FOR UPDATE', [locked]);
    let isWritten = false;
    const waiting = insert(locked).then(() => (isWritten = true));
    await insert(other);
    const beside = await typicalMs(10, () => insert(other));
    expect([isWritten, await count(other)]).toEqual([false, 11]);
    await holder.commitTransaction();
    await holder.release();
    await waiting;
    expect(await count(locked)).toBe(1);
    // Each request that meets the lock would wait for a quarter of a second.
    expect(beside).toBeLessThan(5 * (await typicalMs(10, () => insert(other))) + 50);
  });

  it('keeps to a limit over several processes, and accepts all tasks of a request or none', async () => {
    const second = new TaskIntake(bench.transactions, bench.wakeUps, new StorageQuota({ storageMbPerKey: 0 }));
    {
      const owner = newIdentifier();
      const ask = (n: number, size = 1) =>
        insert(
          owner,
          Array.from({ length: size }, () => task(owner)),
          { maxQueued: 10, intake: n % 2 === 0 ? bench.intake : second },
        );
      expect(await ask(0, 11)).toEqual({ accepted: false, revoked: false, queued: 0 });
      const outcomes = await Promise.all(Array.from({ length: 30 }, (_, n) => ask(n, 1 + (n % 3 === 0 ? 1 : 0))));
      expect(outcomes.some(({ accepted }) => !accepted)).toBe(true);
      expect(await count(owner)).toBe(10);
      expect(await ask(1)).toEqual({ accepted: false, revoked: false, queued: 10 });
    }
  });
});
