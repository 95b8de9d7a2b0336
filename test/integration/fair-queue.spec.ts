import { type DrawingTask, newIdentifier, Task } from '@app/domain';
import { type NewTask, queuePositions, Tasks } from '@app/tasks';
import { createInferenceBench, SteadyContact } from '../support/inference';
import { newTask } from '../support/new-task';
import { ofTest } from '../support/of-suite';

describe('the fair claim', () => {
  const bench = ofTest(createInferenceBench);

  /** Queues tasks of one owner in one transaction, one millisecond apart. */
  async function queue(ownerId: string, count: number, values: Partial<NewTask> = {}): Promise<string[]> {
    const start = Date.now();
    const tasks = Array.from({ length: count }, (_, index) =>
      newTask(ownerId, { createdAt: new Date(start + index), ...values }),
    );
    await bench.intake.insert({ ownerId, maxQueued: 0, tasks });
    return tasks.map(({ id }) => id);
  }

  const claim = (tasks = bench.tasks): Promise<DrawingTask | undefined> => tasks.claim();

  /** A claim that finds a task. */
  const claimOne = async (tasks = bench.tasks): Promise<DrawingTask> => {
    const task = await claim(tasks);
    if (!task) throw new Error('Nothing was claimed.');
    return task;
  };

  const silence = (id: string, seconds = 11): Promise<unknown> =>
    bench.dataSource.query(`UPDATE tasks SET heartbeat_at = now() - $2 * interval '1 s' WHERE id = $1`, [id, seconds]);

  /** Draws one task after the other, each taking its owner's `seconds`; counts the seconds of each owner. */
  async function serve(rounds: number, seconds: (task: DrawingTask) => number): Promise<Map<string, number>> {
    const served = new Map<string, number>();
    for (let round = 0; round < rounds; round++) {
      const task = await claim();
      if (!task) break;
      const computeSeconds = seconds(task);
      await bench.tasks.settle(task, { status: 'succeeded', computeSeconds });
      served.set(task.ownerId, (served.get(task.ownerId) ?? 0) + computeSeconds);
    }
    return served;
  }

  it('skips the tasks of owners that a worker does not want now, even if it is their turn', async () => {
    const [first, second] = inOrder(2);
    await queue(first, 2);
    await queue(second, 1);
    const claimExcept = (...except: string[]) => bench.tasks.claim({ except });
    expect(await claimExcept(first)).toMatchObject({ ownerId: second });
    expect(await claimExcept(first)).toBeUndefined();
    expect(await claimExcept()).toMatchObject({ ownerId: first });
  });

  it('draws a caller’s single task soon, in spite of another’s thousand tasks', async () => {
    const [many, one] = inOrder(2);
    await queue(many, 1000);
    await serve(20, () => 3);
    await queue(one, 1);
    const owners: string[] = [];
    while (!owners.includes(one) && owners.length < 10) owners.push((await claim())?.ownerId ?? '');
    expect(owners).toContain(one);
    expect(owners.length).toBeLessThanOrEqual(2);
  });

  it('draws the few tasks of a caller soon while estimates are far too high', async () => {
    const [many, one] = inOrder(2);
    await queue(many, 100, { steps: 50, numImages: 8, highResolution: true });
    const drawing = [await claim(), await claim(), await claim()];
    await queue(one, 3);
    for (const task of drawing) if (task) await bench.tasks.settle(task, { status: 'succeeded', computeSeconds: 0.01 });
    const owners = [(await claim())?.ownerId, (await claim())?.ownerId];
    expect(owners).toContain(one);
  });

  it('shares compute seconds, not tasks: equal within 20 % if one caller’s tasks cost ten times as much', async () => {
    const [dear, cheap] = [newIdentifier(), newIdentifier()];
    await queue(dear, 30, { steps: 50 });
    await queue(cheap, 200, { steps: 5 });
    const served = await serve(165, ({ steps }) => steps / 10);
    const shares = [dear, cheap].map((owner) => served.get(owner) ?? 0);
    expect(Math.min(...shares) / Math.max(...shares)).toBeGreaterThan(0.8);
  });

  it('shares by measured time if the estimate is wrong', async () => {
    const [slow, fast] = [newIdentifier(), newIdentifier()];
    await queue(slow, 30);
    await queue(fast, 200);
    const served = await serve(165, ({ ownerId }) => (ownerId === slow ? 5 : 0.5));
    const shares = [slow, fast].map((owner) => served.get(owner) ?? 0);
    expect(Math.min(...shares) / Math.max(...shares)).toBeGreaterThan(0.8);
  });

  it('gives no credit for idle time', async () => {
    const [resting, busy] = [newIdentifier(), newIdentifier()];
    await queue(resting, 1);
    await serve(1, () => 1);
    await queue(busy, 100);
    await serve(50, () => 1);
    await queue(resting, 50);
    const served = await serve(40, () => 1);
    expect(served.get(busy)).toBeGreaterThanOrEqual(16);
  });

  it('predicts the order of its claims', async () => {
    const owners = [newIdentifier(), newIdentifier(), newIdentifier()];
    for (const [index, owner] of owners.entries()) await queue(owner, 3 * index + 1);
    await serve(2, () => 1);
    const { manager } = bench.dataSource;
    const queued = await manager.findBy(Task, { status: 'queued' });
    const foretold = await queuePositions(
      manager,
      queued.map(({ id }) => id),
    );
    const order: string[] = [];
    for (let task = await claim(); task; task = await claim()) order.push(task.id);
    expect(order).toHaveLength(10);
    expect(order.map((id) => foretold.get(id))).toEqual(order.map((_, position) => position));
  });

  it('claims a caller’s own tasks in order of acceptance', async () => {
    const accepted = await queue(newIdentifier(), 5);
    const order: string[] = [];
    for (let n = 0; n < 5; n++) order.push((await claimOne()).id);
    expect(order).toEqual(accepted);
  });

  it('gives each task to only one of many workers that claim at once', async () => {
    const owners = [newIdentifier(), newIdentifier(), newIdentifier()];
    for (const owner of owners) await queue(owner, 20);
    const claimed = (await Promise.all(Array.from({ length: 60 }, () => claim()))).filter((task) => task !== undefined);
    expect(new Set(claimed.map(({ id }) => id)).size).toBe(claimed.length);
    // A claim that finds every row locked by others tries again.
    for (let task = await claim(); task; task = await claim()) claimed.push(task);
    expect(claimed).toHaveLength(60);
    expect(await bench.dataSource.manager.countBy(Task, { attempt: 1, status: 'processing' })).toBe(60);
  });

  it('never draws more tasks of a key at once than its limit, however many workers claim', async () => {
    const owner = newIdentifier();
    await bench.dataSource.query(
      `INSERT INTO api_keys (id, name, prefix, secret_hash, webhook_secret, max_concurrent) VALUES ($1, 'x', $2, '', '', 3)`,
      [owner, owner.slice(0, 12)],
    );
    const [other] = [newIdentifier()];
    await queue(owner, 30);
    await queue(other, 2);
    const claimed = (await Promise.all(Array.from({ length: 30 }, () => claim()))).filter((task) => task !== undefined);
    for (let next = await claim(); next; next = await claim()) claimed.push(next);
    expect(claimed.filter(({ ownerId }) => ownerId === other)).toHaveLength(2);
    const own = claimed.filter(({ ownerId }) => ownerId === owner);
    expect(own).toHaveLength(3);
    await bench.tasks.settle(own[1], { status: 'failed' });
    expect(await claim()).toMatchObject({ ownerId: owner });
    expect(await claim()).toBeUndefined();
  });

  it('uses the configured limit if the key has none of its own', async () => {
    const tasks = new Tasks(bench.transactions, new SteadyContact(), 1);
    await queue(newIdentifier(), 2);
    expect(await claim(tasks)).toBeDefined();
    expect(await claim(tasks)).toBeUndefined();
  });

  it('does not charge the owner of a silent worker’s task twice, and gives it to only one other', async () => {
    const owner = newIdentifier();
    await queue(owner, 1);
    const left = await claimOne();
    const charged = () => bench.dataSource.query('SELECT virtual_time FROM fair_shares WHERE owner_id = $1', [owner]);
    const before: unknown = await charged();
    await silence(left.id);
    await bench.sweep.sweep();
    const claims = await Promise.all([claim(), claim(), claim()]);
    expect(claims.filter((task) => task?.id === left.id)).toEqual([expect.objectContaining({ attempt: 2, deaths: 1 })]);
    expect(await charged()).toEqual(before);
    expect(await bench.tasks.heartbeat(left)).toBe(false);
  });

  it('charges a long prompt for its extra cost', async () => {
    const charged = async (promptChunks: number | null): Promise<number> => {
      const owner = newIdentifier();
      await queue(owner, 1, { promptChunks });
      const task = await claim();
      expect(task?.ownerId).toBe(owner);
      await bench.tasks.settle(task!, { status: 'failed', error: 'x' });
      return task!.chargedSeconds;
    };
    const [unknown, one, two, most] = [await charged(null), await charged(1), await charged(2), await charged(32)];
    expect(unknown).toBe(one);
    expect(two).toBeGreaterThan(one);
    expect(most).toBeGreaterThan(1.5 * one);
  });

  it('keeps a key within its limit when its abandoned task is claimed', async () => {
    const tasks = new Tasks(bench.transactions, new SteadyContact(), 1);
    await queue(newIdentifier(), 2);
    const left = await claimOne(tasks);
    await silence(left.id);
    await bench.sweep.sweep();
    expect(await claim(tasks)).toMatchObject({ id: left.id });
    expect(await claim(tasks)).toBeUndefined();
  });

  it('does not draw a task that waits for its next attempt', async () => {
    await queue(newIdentifier(), 1);
    const task = await claimOne();
    await bench.tasks.release(task, { delayMs: 60_000 });
    expect(await claim()).toBeUndefined();
    await bench.dataSource.query(`UPDATE tasks SET not_before = now() - interval '1 s'`);
    expect(await claim()).toMatchObject({ id: task.id, attempt: 2 });
  });
});

/** Owners in the order in which ties are served, so that the second cannot win by its id. */
function inOrder(count: number): string[] {
  return Array.from({ length: count }, newIdentifier).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}
