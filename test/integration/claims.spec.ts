import { DatabaseContact } from '@app/database';
import { type DrawingTask, newIdentifier } from '@app/domain';
import { claimStatement, fatalCount, type NewTask, Tasks, undrawableAfterMs, type ClaimFilter } from '@app/tasks';
import { createInferenceBench, SteadyContact } from '../support/inference';
import { newTask } from '../support/new-task';
import { rowsReadBy } from '../support/rows-read';
import { typicalMs } from '../support/typical-ms';
import { manyTasks } from '../support/many-tasks';
import { ofTest } from '../support/of-suite';

describe('the claim of a worker', () => {
  const bench = ofTest(createInferenceBench);

  /** Queues tasks of one owner, one millisecond apart. */
  async function queue(ownerId: string, values: Partial<NewTask>, count = 1): Promise<string[]> {
    const start = values.createdAt?.getTime() ?? Date.now();
    const tasks = Array.from({ length: count }, (_, index) =>
      newTask(ownerId, { ...values, createdAt: new Date(start + index) }),
    );
    await bench.intake.insert({ ownerId, maxQueued: 0, tasks });
    return tasks.map(({ id }) => id);
  }
  const claim = (wanted: ClaimFilter): Promise<DrawingTask | undefined> => bench.tasks.claim(wanted);
  const query = (sql: string, parameters?: unknown[]): Promise<unknown> => bench.dataSource.query(sql, parameters);
  const old = new Date(Date.now() - 2 * undrawableAfterMs);
  /** A worker said that it can draw the model. */
  const seen = (name: string, msAgo: number) =>
    query(
      `INSERT INTO drawable_models VALUES ($1, now() - $2 * interval '1 ms')
       ON CONFLICT (name) DO UPDATE SET drawable_at = excluded.drawable_at`,
      [name, msAgo],
    );
  const silence = () => query(`UPDATE tasks SET heartbeat_at = now() - interval '11 s' WHERE status = 'processing'`);

  it.each([
    ['one that was near a death', { deaths: 1 }, [9, 11]],
    ['one with which three workers died', { deaths: 3, drawnAlone: true }, [39, 41]],
    ['one that waited for its last try', { deaths: fatalCount - 1 }, [79, 81]],
    ['one whose last try ended with its worker', { deaths: fatalCount - 1, drawnAlone: true }, [19, 21]],
  ] as const)('takes a task from its silent worker: %s', async (_, values, [early, due]) => {
    const { id } = await bench.addTask({ ...values, status: 'processing' });
    const silent = (seconds: number) => query(`UPDATE tasks SET heartbeat_at = now() - $1 * interval '1 s'`, [seconds]);
    await silent(early);
    await bench.sweep.sweep();
    expect(await claim({})).toBeUndefined();
    await silent(due);
    expect(await bench.tasks.silent()).toMatchObject([{ id }]);
  });

  it('takes no task from a worker that looks silent after an outage, until that could have sent a heartbeat', async () => {
    let now = 0;
    const contact = new DatabaseContact(() => now);
    const tasks = new Tasks(bench.transactions, contact);
    const { id } = await bench.addTask({ status: 'processing', attempt: 1 });
    await silence();
    const answersAfter = (seconds: number): void => {
      now += seconds * 1000;
      contact.noteAnswer(Date.now());
    };
    // A process that has just started.
    answersAfter(0);
    expect(await tasks.silent()).toEqual([]);
    for (let n = 0; n < 5; n++) answersAfter(2);
    // An outage.
    now += 9_000;
    expect(await tasks.silent()).toEqual([]);
    answersAfter(0);
    answersAfter(2);
    expect(await tasks.silent()).toEqual([]);
    answersAfter(2);
    answersAfter(2);
    expect(await tasks.silent()).toMatchObject([{ id }]);
  });

  it('counts silence up to the moment at which it asks, not to that at which the database answers', async () => {
    await bench.addTask({ status: 'processing', attempt: 1 });
    await silence();
    const tasks = new Tasks(bench.transactions, new SteadyContact(-2_000));
    expect(await tasks.silent()).toEqual([]);
    expect(await bench.tasks.silent()).toHaveLength(1);
  });

  it('is not taken for another worker’s claim of the same task, however late the task is read', async () => {
    const { id } = await bench.addTask();
    const { manager } = bench.dataSource;
    const original = manager.query.bind(manager);
    const claiming = jest.spyOn(manager, 'query').mockImplementationOnce(async (...statement) => {
      const claimed: unknown = await original(...statement);
      await original('UPDATE tasks SET attempt = attempt + 1');
      return claimed;
    });
    expect(await claim({})).toBeUndefined();
    expect(claiming).toHaveBeenCalledWith(claimStatement(false), expect.anything());
    expect(await bench.taskOf(id)).toMatchObject({ status: 'processing', attempt: 2 });
  });

  describe('by model', () => {
    it('is offered what it can draw, and is told of what waits for others', async () => {
      const owner = newIdentifier();
      await queue(owner, { model: 'large', createdAt: old });
      const [small] = await queue(owner, { model: 'small' });
      await seen('large', 0);
      expect(await claim({ models: ['small', 'tiny'] })).toMatchObject({ id: small });
      expect(await claim({ models: ['small'] })).toBeUndefined();
      expect(await claim({ models: [] })).toBeUndefined();
      expect(await bench.tasks.hasTaskForOtherModels(['small'])).toBe(true);
      expect(await claim({ models: ['large'] })).toMatchObject({ model: 'large' });
      expect(await bench.tasks.hasTaskForOtherModels(['small'])).toBe(false);
    });

    it('keeps an owner’s order across models', async () => {
      const owner = newIdentifier();
      const ids: string[] = [];
      for (const [i, model] of ['b', 'a', 'c', 'a', 'b'].entries())
        ids.push(...(await queue(owner, { model, createdAt: new Date(old.getTime() + i) })));
      const claimed: (string | undefined)[] = [];
      for (let n = 0; n < 5; n++) claimed.push((await claim({ models: ['a', 'b', 'c'] }))?.id);
      expect(claimed).toEqual(ids);
    });

    it('offers a task to any worker when none has had its model for a while', async () => {
      const [id] = await queue(newIdentifier(), { model: 'gone', createdAt: old });
      await seen('gone', undrawableAfterMs);
      expect(await claim({ models: ['small'], undrawable: true })).toBeUndefined();
      await seen('gone', undrawableAfterMs + 6_000);
      // This worker itself has not been up for long.
      expect(await claim({ models: ['small'], undrawable: false })).toBeUndefined();
      await query('UPDATE tasks SET created_at = now()');
      expect(await claim({ models: ['small'], undrawable: true })).toBeUndefined();
      await query('UPDATE tasks SET created_at = $1', [old]);
      expect(await claim({ models: ['small'], undrawable: true })).toMatchObject({ id });
    });

    it('leaves a task to the worker that has what is trained in place of its model, while there is one', async () => {
      const [id] = await queue(newIdentifier(), { model: 'distilled', createdAt: old });
      const wanted = { models: ['small'], trainedOn: { distilled: 'base' }, undrawable: true };
      for (const model of ['distilled', 'base']) await seen(model, 0);
      expect(await claim(wanted)).toBeUndefined();
      await seen('base', undrawableAfterMs + 6_000);
      expect(await claim({ ...wanted, trainedOn: {} })).toBeUndefined();
      expect(await claim(wanted)).toMatchObject({ id });
    });

    it('reads no more where an owner has 50,000 tasks of a model that it cannot draw', async () => {
      const [owner, other] = [newIdentifier(), newIdentifier()];
      await queue(owner, { model: 'small' }, 11);
      await queue(other, { model: 'small' }, 11);
      const read = () =>
        rowsReadBy(bench.dataSource, 'tasks', claimStatement(false), [...[0, 'channel', [], ['small'], true, [], {}]]);
      await query('ANALYZE tasks');
      const amongFew = await read();
      for (const model of ['large', 'zoom'])
        await query(
          `WITH ${manyTasks(25_000, {
            id: `$2::text || lpad(i::text, 19, '0')`,
            owner: '$1',
            model: '$2',
            createdAt: `now() - i * interval '1 s'`,
          })} SELECT`,
          [owner, model],
        );
      await query('ANALYZE tasks');
      for (const model of ['large', 'zoom']) await seen(model, 0);
      expect(amongFew).toBeGreaterThan(0);
      // Two more models of this owner, each with one look.
      expect(await read()).toBeLessThanOrEqual(amongFew + 6);
      // Two were claimed by what was explained.
      for (let n = 0; n < 20; n++) expect(await claim({ models: ['small'] })).toMatchObject({ model: 'small' });
      expect(await claim({ models: ['small'] })).toBeUndefined();
    });
  });

  describe('by what is loaded', () => {
    const loaded = ['shapes'];

    /** Ends a task that took so long. */
    const settle = (task: DrawingTask, computeSeconds: number) =>
      bench.tasks.settle(task, { status: 'succeeded', computeSeconds });
    const behind = (owner: string, seconds: number) =>
      query(
        `INSERT INTO fair_shares VALUES ($1, $2) ON CONFLICT (owner_id) DO UPDATE SET virtual_time = excluded.virtual_time`,
        [owner, seconds],
      );

    it('prefers an owner whose oldest task’s model is loaded, whatever its Fine-Tune, within some seconds', async () => {
      const [other, same] = [newIdentifier(), newIdentifier()];
      await queue(other, { model: 'rare' }, 9);
      await queue(same, { model: 'shapes', finetuneId: newIdentifier() }, 9);
      await behind(other, 100);
      await behind(same, 104);
      expect(await claim({ loaded: [] })).toMatchObject({ ownerId: other });
      await behind(other, 100);
      expect(await claim({ loaded })).toMatchObject({ ownerId: same });
      expect(await claim({ loaded: ['rare'] })).toMatchObject({ ownerId: other });
      await behind(other, 100);
      await behind(same, 106);
      expect(await claim({ loaded })).toMatchObject({ ownerId: other });
    });

    it('serves an owner whose model is not loaded soon, however many others there are, and as much as them', async () => {
      const owners = Array.from({ length: 4 }, newIdentifier);
      const lone = newIdentifier();
      for (const owner of owners) await queue(owner, { model: 'shapes' }, 100);
      await queue(lone, { model: 'rare' }, 100);
      const served = new Map<string, number>();
      const first: number[] = [];
      for (let turn = 0; turn < 150; turn++) {
        const task = (await claim({ loaded }))!;
        await settle(task, 1);
        served.set(task.ownerId, (served.get(task.ownerId) ?? 0) + 1);
        if (task.ownerId === lone) first.push(turn);
      }
      // Each other owner goes before for at most so many seconds.
      expect(first[0]).toBeLessThanOrEqual(owners.length * 6);
      expect(served.get(lone)).toBeGreaterThanOrEqual(150 / 5 - 6);
    });
  });

  it('claims by index among 30,000 queued tasks', async () => {
    const owner = newIdentifier();
    await queue(owner, {}, 11);
    await queue(newIdentifier(), {}, 11);
    const amongFewMs = await typicalMs(20, () => claim({}));
    await query(
      `WITH ${manyTasks(30_000, {
        id: `lpad(i::text, 24, '0')`,
        owner: '$1',
        createdAt: `now() + i * interval '1 ms'`,
      })} SELECT`,
      [owner],
    );
    await query('ANALYZE tasks');
    // The statistics do not reflect those that have ended since.
    await query(
      `UPDATE tasks SET status = 'succeeded' WHERE id IN (SELECT lpad(n::text, 24, '0') FROM generate_series(1, 1000) n)`,
    );
    const explained = async (): Promise<string> => {
      const plan = await bench.dataSource.query<{ 'QUERY PLAN': string }[]>(
        `EXPLAIN (ANALYZE, BUFFERS) ${claimStatement(false)}`,
        [0, 'channel', [], null, false, [], {}],
      );
      return plan.map((line) => line['QUERY PLAN']).join('\n');
    };
    /** Pages of 8 kB that the plan reads; the table has more than a thousand. */
    const pagesOf = (text: string): number => {
      const [, hit = 0, read = 0] = /Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/.exec(text) ?? [];
      return Number(hit) + Number(read);
    };
    const look = async (): Promise<void> => {
      const text = await explained();
      expect(text).not.toMatch(/Seq Scan on tasks/);
      expect(text.match(/using tasks_queued_model_idx/g)).toHaveLength(3);
      expect(pagesOf(text)).toBeGreaterThan(0);
      expect(pagesOf(text)).toBeLessThan(500);
    };
    await look();
    expect(await typicalMs(100, () => claim({}))).toBeLessThan(10 * amongFewMs + 20);
    // Dead rows of earlier claims do not make the next more expensive.
    await look();
  });
});
