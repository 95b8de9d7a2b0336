import { QueryBatcher } from './query-batcher';

describe(QueryBatcher.name, () => {
  it('rejects all waiting questions when no answer comes, and then asks again', async () => {
    const hangs = new Promise<never>(() => undefined);
    let asked = 0;
    const gathered = new QueryBatcher<number, number>(
      (inputs) => (asked++ === 0 ? hangs : Promise.resolve(inputs)),
      1,
      50,
    );
    const outcomes = await Promise.allSettled([gathered.get(1), gathered.get(2), gathered.get(3)]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ETIMEDOUT' } });
    expect(await gathered.get(4)).toBe(4);
  });
});
