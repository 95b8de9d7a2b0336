import type { Pages } from './paged-list';
import { PagedList } from './paged-list';

interface Element {
  id: string;
  status?: string;
}

interface Service {
  elements: Element[];
  requests: number;
  failure: Error | undefined;
  open: () => Pages<Element>;
}

async function* pagesOf(service: Service): Pages<Element> {
  for (let at = 0; at < service.elements.length; at += 2) {
    service.requests++;
    await Promise.resolve();
    if (service.failure) throw service.failure;
    yield service.elements.slice(at, at + 2);
  }
}

/** A list of a service, and how many pages were asked for. */
function service(...ids: string[]): Service {
  const found: Service = {
    elements: ids.map((id) => ({ id })),
    requests: 0,
    failure: undefined,
    open: () => pagesOf(found),
  };
  return found;
}

describe(PagedList.name, () => {
  const idsOf = ({ value }: PagedList<Element>) => value?.map(({ id }) => id).join('');

  it('reads a page at a time, until one is not full', async () => {
    const list = new PagedList(service(...'edcba').open, 2);
    expect([list.value, list.hasMore]).toEqual([undefined, false]);
    await list.more();
    expect([idsOf(list), list.hasMore]).toEqual(['ed', true]);
    await list.more();
    await list.more();
    expect([idsOf(list), list.hasMore]).toEqual(['edcba', false]);
  });

  it('is empty where nothing is', async () => {
    const list = new PagedList(service().open, 2);
    await list.more();
    expect([idsOf(list), list.hasMore, list.error]).toEqual(['', false, undefined]);
  });

  it('puts what is new before what it has, and takes changes of its beginning over', async () => {
    const there = service(...'dcba');
    const list = new PagedList(there.open, 2);
    await list.more();
    await list.more();
    there.elements = [{ id: 'e' }, { id: 'd', status: 'changed' }, ...there.elements.slice(1)];
    await list.refresh();
    expect(idsOf(list)).toBe('edcba');
    expect(list.value?.[1].status).toBe('changed');
  });

  it('lets go what is there no longer', async () => {
    const there = service(...'dcba');
    const list = new PagedList(there.open, 2);
    await list.more();
    there.elements = [{ id: 'c' }];
    await list.refresh();
    expect([idsOf(list), list.hasMore]).toEqual(['c', false]);
  });

  it('begins anew where so much is new that there would be a gap, and reads on from there', async () => {
    const there = service(...'ba');
    const list = new PagedList(there.open, 2);
    await list.more();
    there.elements = [...'gfedcba'].map((id) => ({ id }));
    await list.refresh();
    expect([idsOf(list), list.hasMore]).toEqual(['gf', true]);
    await list.more();
    expect(idsOf(list)).toBe('gfed');
  });

  it('reads as far as before when it is asked for all', async () => {
    const there = service(...'fedcba');
    const list = new PagedList(there.open, 2);
    await list.more();
    await list.more();
    there.elements[3].status = 'changed';
    there.requests = 0;
    await list.refresh(true);
    expect([idsOf(list), list.value?.[3].status, there.requests]).toEqual(['fedc', 'changed', 2]);
  });

  it('keeps what it has when a request fails, says why, and reads on later', async () => {
    const there = service(...'dcba');
    const list = new PagedList(there.open, 2);
    await list.more();
    there.failure = new Error('away');
    await list.more();
    expect([idsOf(list), list.error]).toEqual(['dc', there.failure]);
    there.failure = undefined;
    await list.more();
    expect([idsOf(list), list.error]).toEqual(['dcba', undefined]);
  });
});
