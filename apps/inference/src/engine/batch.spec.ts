import { batchOf, inOrderOfTurns, withoutOwnersAhead } from './batch';
import type { RunningTask } from './running-task';

type Fake = Pick<RunningTask, 'owner' | 'callKey' | 'adapterRanks' | 'isSuspect' | 'rowsLeft' | 'rowsInAll'> &
  Pick<RunningTask, 'msLeft' | 'waitedMs' | 'computeMs'> & { pictures: number; rows: number };

/** A guided drawing of one picture and 20 steps that has just begun. */
function task(change: Partial<Fake> = {}): RunningTask {
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
  return { ...about, rowsInAll, rowsLeft, denoising, ...change } as unknown as RunningTask;
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
    const [long, short] = [task({ rowsLeft: 40 }), task({ rowsLeft: 8 })];
    expect(inOrderOfTurns([long, short], had())).toEqual([short, long]);
  });

  it('puts what has waited for ten times as long as it needs in all before what began later, also if that waited', () => {
    const [long, short] = [task({ rowsLeft: 40, waitedMs: 4_001 }), task({ rowsLeft: 8, waitedMs: 801 })];
    expect(inOrderOfTurns([long, short], had())).toEqual([long, short]);
  });

  it('lets an owner go on until it is ahead of another by twice the time of its shortest drawing', () => {
    const [long, short] = [task({ rowsLeft: 100 }), task({ owner: 'two', rowsLeft: 8 })];
    expect(inOrderOfTurns([long, short], had({ one: 161 }))).toEqual([short]);
    expect(inOrderOfTurns([long, short], had({ two: 2_001 }))).toEqual([long]);
  });

  it('puts first what may be at fault', () => {
    const suspect = task({ isSuspect: true });
    expect(inOrderOfTurns([task({ rowsLeft: 2 }), suspect], had())[0]).toBe(suspect);
  });
});

describe(batchOf.name, () => {
  const tasksOf = (batch: ReturnType<typeof batchOf>) => batch.map((part) => part.running);

  it('takes the pictures of all that may share a call, up to its rows', () => {
    const [three, two, other] = [task({ pictures: 3 }), task({ pictures: 2 }), task({ callKey: 'another' })];
    const batch = batchOf([three, other, two], 8);
    expect(tasksOf(batch)).toEqual([three, two]);
    expect(batch.map(({ pictures }) => pictures.length)).toEqual([3, 1]);
  });

  it('takes a picture in any case', () => {
    expect(batchOf([task({ pictures: 2 })], 1)[0].pictures).toHaveLength(1);
  });

  it('fills up with a picture that has fewer rows', () => {
    const [guided, plain] = [task({ pictures: 2 }), task({ rows: 1, rowsInAll: 40 })];
    expect(batchOf([guided, plain], 3).map(({ pictures }) => pictures.length)).toEqual([1, 1]);
  });

  it('leaves out what has so much left that it would only slow the first one down', () => {
    const [first, longer, long] = [task({}), task({ rowsLeft: 60 }), task({ rowsLeft: 61 })];
    expect(tasksOf(batchOf([first, longer, long], 16))).toEqual([first, longer]);
  });

  it('has adapters of one rank in a call, with pictures that have none', () => {
    const [base, four, eight, otherFour] = ['', '4', '8', '4'].map((adapterRanks) => task({ adapterRanks }));
    expect(tasksOf(batchOf([base, four, eight, otherFour], 16))).toEqual([base, four, otherFour]);
    expect(tasksOf(batchOf([eight, four, base, otherFour], 16))).toEqual([eight, base]);
  });

  it('has what may be at fault in a call of its own', () => {
    const [suspect, sound] = [task({ isSuspect: true }), task()];
    expect(tasksOf(batchOf([suspect, sound], 16))).toEqual([suspect]);
    expect(tasksOf(batchOf([sound, suspect], 16))).toEqual([sound]);
  });
});
