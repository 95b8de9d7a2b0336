import { batchOf, inOrderOfTurns, withoutOwnersAhead } from './batch';
import type { Drawing } from './drawing';

type Fake = Pick<Drawing, 'owner' | 'callKey' | 'adapterRanks' | 'isSuspect' | 'rowsLeft' | 'rowsInAll'> &
  Pick<Drawing, 'msLeft' | 'waitedMs' | 'computeMs'> & { pictures: number; rows: number };

/** A guided drawing of one picture and 20 steps that has just begun. */
function drawing(change: Partial<Fake> = {}): Drawing {
  const { pictures = 1, rows = 2 } = change;
  const rowsInAll = change.rowsInAll ?? 20 * rows * pictures;
  const rowsLeft = change.rowsLeft ?? rowsInAll;
  const about = {
    owner: 'one',
    callKey: 'kind',
    adapterRanks: '',
    isSuspect: false,
    waitedMs: 0,
    computeMs: 0,
    msLeft: rowsLeft * 10,
  };
  const denoising = Array.from({ length: pictures }, (_, index) => ({ index, rows }));
  return { ...about, rowsInAll, rowsLeft, denoising, ...change } as unknown as Drawing;
}

const had = (ms: Record<string, number> = {}) => ({ usedMsOf: (owner: string) => ms[owner] ?? 0 });

describe(withoutOwnersAhead.name, () => {
  const of = (...owners: string[]) => owners.map((owner) => ({ owner, msLeft: 10 }));

  it('leaves out who is ahead of another by more than twice what that one still needs', () => {
    expect(withoutOwnersAhead(of('one', 'two'), had({ one: 21 })).map(({ owner }) => owner)).toEqual(['two']);
    expect(withoutOwnersAhead(of('one', 'two'), had({ one: 20 })).map(({ owner }) => owner)).toEqual(['one', 'two']);
  });

  it('has somebody as long as there is one', () => {
    expect(withoutOwnersAhead(of('one'), had({ one: 1e9 }))).toHaveLength(1);
    expect(withoutOwnersAhead([], had())).toEqual([]);
  });
});

describe(inOrderOfTurns.name, () => {
  it('puts what has least left first', () => {
    const [long, short] = [drawing({ rowsLeft: 40 }), drawing({ rowsLeft: 8 })];
    expect(inOrderOfTurns([long, short], had())).toEqual([short, long]);
  });

  it('puts what has waited for ten times as long as it needs in all before what began later, also if that waited', () => {
    const [long, short] = [drawing({ rowsLeft: 40, waitedMs: 4_001 }), drawing({ rowsLeft: 8, waitedMs: 801 })];
    expect(inOrderOfTurns([long, short], had())).toEqual([long, short]);
  });

  it('lets an owner go on until it is ahead of another by twice the time of its shortest drawing', () => {
    const [long, short] = [drawing({ rowsLeft: 100 }), drawing({ owner: 'two', rowsLeft: 8 })];
    expect(inOrderOfTurns([long, short], had({ one: 161 }))).toEqual([short]);
    expect(inOrderOfTurns([long, short], had({ two: 2_001 }))).toEqual([long]);
  });

  it('puts first what may be at fault', () => {
    const suspect = drawing({ isSuspect: true });
    expect(inOrderOfTurns([drawing({ rowsLeft: 2 }), suspect], had())[0]).toBe(suspect);
  });
});

describe(batchOf.name, () => {
  const drawingsOf = (batch: ReturnType<typeof batchOf>) => batch.map((part) => part.drawing);

  it('takes the pictures of all that may share a call, up to its rows', () => {
    const [three, two, other] = [drawing({ pictures: 3 }), drawing({ pictures: 2 }), drawing({ callKey: 'another' })];
    const batch = batchOf([three, other, two], 8);
    expect(drawingsOf(batch)).toEqual([three, two]);
    expect(batch.map(({ pictures }) => pictures.length)).toEqual([3, 1]);
  });

  it('takes a picture in any case', () => {
    expect(batchOf([drawing({ pictures: 2 })], 1)[0].pictures).toHaveLength(1);
  });

  it('fills up with a picture that has fewer rows', () => {
    const [guided, plain] = [drawing({ pictures: 2 }), drawing({ rows: 1, rowsInAll: 40 })];
    expect(batchOf([guided, plain], 3).map(({ pictures }) => pictures.length)).toEqual([1, 1]);
  });

  it('leaves out what has so much left that it would only slow the first one down', () => {
    const [first, longer, long] = [drawing({}), drawing({ rowsLeft: 60 }), drawing({ rowsLeft: 61 })];
    expect(drawingsOf(batchOf([first, longer, long], 16))).toEqual([first, longer]);
  });

  it('has adapters of one rank in a call, with pictures that have none', () => {
    const [base, four, eight, otherFour] = ['', '4', '8', '4'].map((adapterRanks) => drawing({ adapterRanks }));
    expect(drawingsOf(batchOf([base, four, eight, otherFour], 16))).toEqual([base, four, otherFour]);
    expect(drawingsOf(batchOf([eight, four, base, otherFour], 16))).toEqual([eight, base]);
  });

  it('has what may be at fault in a call of its own', () => {
    const [suspect, sound] = [drawing({ isSuspect: true }), drawing()];
    expect(drawingsOf(batchOf([suspect, sound], 16))).toEqual([suspect]);
    expect(drawingsOf(batchOf([sound, suspect], 16))).toEqual([sound]);
  });
});
