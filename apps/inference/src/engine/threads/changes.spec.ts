import { Changes } from './changes';

describe(Changes.name, () => {
  let changes: Changes;

  beforeEach(() => void (changes = new Changes()));

  it('does not miss a change between two looks', async () => {
    changes.note();
    await expect(changes.next()).resolves.toBeUndefined();
  });

  it('lets several wait for the changes after the last one that each has seen', async () => {
    const { count } = changes;
    const first = changes.next(count);
    changes.note();
    await first;
    await changes.next(count);
    let looked = 0;
    const both = [changes.count, changes.count].map((since) => changes.next(since).then(() => looked++));
    expect(looked).toBe(0);
    changes.note();
    await Promise.all(both);
    expect(looked).toBe(2);
  });
});
