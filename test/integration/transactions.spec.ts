import { Drawing } from '@app/domain';
import { afterCommit } from '@app/queue';
import type { EntityManager } from 'typeorm';
import { createInferenceBench } from '../support/inference';
import { ofSuite } from '../support/of-suite';

describe('two transactions that wait for each other', () => {
  const bench = ofSuite(createInferenceBench);

  /** Two transactions that change the same rows in opposite order, and deadlock the first time. */
  async function oppositeWork() {
    const ids = [await addTask(), await addTask()];
    let arrived = 0;
    let meet = (): void => undefined;
    const met = new Promise<void>((resolve) => (meet = resolve));
    let tries = 0;
    const change = (name: string, order: readonly string[]) => async (manager: EntityManager) => {
      tries++;
      await manager.update(Drawing, { id: order[0] }, { prompt: name });
      if (++arrived === 2) meet();
      await met;
      await manager.update(Drawing, { id: order[1] }, { prompt: name });
    };
    return {
      works: [change('first', ids), change('second', [...ids].reverse())],
      prompts: async () => (await Promise.all(ids.map((id) => bench.taskOf(id)))).map(({ prompt }) => prompt),
      tries: () => tries,
    };
  }

  const addTask = async (): Promise<string> => (await bench.addTask({})).id;

  it.each(['run', 'enclose'] as const)('are both committed by %s, one of them in a second attempt', async (method) => {
    const { works, prompts, tries } = await oppositeWork();
    const perform = (work: (manager: EntityManager) => Promise<void>): Promise<void> =>
      method === 'run'
        ? bench.transactions.run(work)
        : bench.transactions.enclose(() => work(bench.transactions.manager));
    await Promise.all(works.map(perform));
    // The repeated transaction may be quicker than the waiting one, and deadlock with it once more.
    expect(tries()).toBeGreaterThanOrEqual(3);
    const [first, second] = await prompts();
    expect(first).toBe(second);
  });
});

describe('a transaction that encloses a call', () => {
  const bench = ofSuite(createInferenceBench);

  it('takes no connection before the first write', async () => {
    let write = (): void => undefined;
    const mayWrite = new Promise<void>((resolve) => (write = resolve));
    const { id } = await bench.addTask({});
    const calls = Array.from({ length: 40 }, (_, index) =>
      bench.transactions.enclose(async () => {
        await bench.taskOf(id);
        await mayWrite;
        await bench.transactions.manager.update(Drawing, { id }, { prompt: `${index}` });
      }),
    );
    expect((await bench.taskOf(id)).id).toBe(id);
    write();
    await Promise.all(calls);
  });

  it('rolls back a plain write, and skips the work for after the commit', async () => {
    const { id, prompt } = await bench.addTask({});
    let done = 0;
    const work = (failure?: Error) =>
      bench.transactions.enclose(async () => {
        await bench.transactions.manager.update(Drawing, { id }, { prompt: 'changed' });
        await afterCommit(async () => void done++);
        expect((await bench.taskOf(id)).prompt).toBe('changed');
        if (failure) throw failure;
      });
    await expect(work(new Error('broken'))).rejects.toThrow('broken');
    expect([(await bench.taskOf(id)).prompt, done]).toEqual([prompt, 0]);
    await work();
    expect([(await bench.taskOf(id)).prompt, done]).toEqual(['changed', 1]);
  });
});
