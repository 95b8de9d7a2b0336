import { readPages } from './pages';

async function* list(...pages: number[][]): AsyncGenerator<number[], void, undefined> {
  yield* pages;
}

describe('readPages', () => {
  it('reads as many pages as are shown, and says that there may be more', async () => {
    expect(await readPages(list([6, 5], [4, 3], [2]), 2, 2)).toEqual({ rows: [6, 5, 4, 3], hasMore: true });
  });

  it('says that there is no more after a page that is not full, and where the list is at its end', async () => {
    expect(await readPages(list([6, 5], [4]), 2, 2)).toEqual({ rows: [6, 5, 4], hasMore: false });
    expect(await readPages(list([6, 5]), 2, 2)).toEqual({ rows: [6, 5], hasMore: false });
    expect(await readPages(list(), 1, 2)).toEqual({ rows: [], hasMore: false });
  });
});
