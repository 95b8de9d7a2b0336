import { type Candidate, chooseCall, goesAfterDrawings, inOrder, msLeft, notAhead, passedOverAfter } from './next-call';

interface Named extends Candidate {
  name: string;
}

/** A drawing of one guided picture with so many steps left, of an owner of its own. */
function drawing(name: string, left: number, change: Partial<Candidate> & { count?: number } = {}): Named {
  const { count = 1, ...rest } = change;
  return {
    name,
    owner: name,
    kind: 'square',
    remainingWork: 2 * left * count,
    totalWork: 2 * left * count,
    trajectories: Array.from({ length: count }),
    undecoded: Array.from({ length: count }),
    passedOver: 0,
    pictures: Array.from({ length: count }, () => ({ group: 'square', rows: 2 })),
    ...rest,
  };
}

const many = (count: number, left: number, change: Partial<Candidate> = {}): Named[] =>
  Array.from({ length: count }, (_, i) => drawing(`${i}`, left, change));

const rowMs = 5;
/** A row of each kind takes as long, and decoding as long as so many rows. */
const times = (decodeRows = 0) => ({ rowMs: () => rowMs, decodeRows: () => decodeRows });
const sharesOf = (had: Record<string, number>) => ({ of: (owner: string) => had[owner] ?? 0 });

function callOf(
  candidates: readonly Named[],
  engineMs: Record<string, number> = {},
  maxRows = 16,
  isSharingSooner = false,
): string[] {
  const inTurn = notAhead(candidates, sharesOf(engineMs), times());
  const call = chooseCall(inOrder(inTurn, times()), {
    ...times(),
    maxRows: () => maxRows,
    isSharingSooner: () => isSharingSooner,
  });
  return call.map(({ candidate, pictures }) => `${candidate.name}x${pictures.length}`);
}

describe(chooseCall.name, () => {
  it('chooses nothing where there is nothing to draw', () => {
    expect(callOf([])).toEqual([]);
  });

  it('lets all go but the one that has most left to do, while a call has room for more', () => {
    expect(callOf([drawing('long', 30), drawing('short', 10)])).toEqual(['shortx1']);
    expect(callOf([drawing('c', 15), drawing('a', 10), drawing('b', 14)])).toEqual(['ax1', 'bx1']);
    expect(callOf([...many(6, 20), drawing('long', 30)])).toHaveLength(6);
  });

  it('lets all go together where that is sooner for them', () => {
    expect(callOf([drawing('long', 30), drawing('short', 20)], {}, 16, true)).toEqual(['shortx1', 'longx1']);
  });

  it('counts those that were passed over in its own group only', () => {
    const wide = { kind: 'wide', pictures: [{ group: 'wide', rows: 2 }], passedOver: 31 };
    const first = drawing('first', 20, { passedOver: 40 });
    const others = [drawing('wide 1', 20, wide), drawing('wide 2', 20, wide), drawing('wide 3', 20, wide)];
    expect(callOf([first, drawing('second', 30), ...others])).toEqual(['firstx1']);
  });

  it('fills a call as soon as there are enough pictures for it', () => {
    expect(callOf(many(8, 20))).toHaveLength(8);
    expect(callOf(many(12, 20))).toHaveLength(8);
    expect(callOf([drawing('all', 20, { count: 8 })])).toEqual(['allx8']);
    expect(callOf([drawing('all', 20, { count: 5 }), drawing('other', 110)])).toEqual(['allx5']);
  });

  it('draws one by one what takes more rows than there are', () => {
    expect(callOf(many(3, 20), {}, 1)).toEqual(['0x1']);
    expect(callOf([drawing('all', 20, { count: 3 })], {}, 4)).toEqual(['allx2']);
  });

  it('draws a short one alone before many long ones', () => {
    expect(callOf([...many(8, 50), drawing('short', 4)])).toEqual(['shortx1']);
    expect(callOf([...many(8, 6), drawing('short', 4)])).toHaveLength(8);
  });

  it('takes along what was passed over often enough, and begins with it', () => {
    const passed = drawing('long', 50, { passedOver: 30 });
    expect(callOf([drawing('short', 4), passed])).toEqual(['longx1']);
    expect(callOf([drawing('short', 4), drawing('long', 50, { passedOver: 29 })])).toEqual(['shortx1']);
  });

  it('shares a call only between pictures of one group, that of the first', () => {
    const wide = { kind: 'wide', pictures: [{ group: 'wide', rows: 2 }] };
    expect(callOf([...many(8, 20), drawing('wide', 10, wide)])).toEqual(['widex1']);
    expect(callOf([...many(8, 20), drawing('wide', 30, wide)])).toHaveLength(8);
  });

  it('takes only those pictures of a drawing that are of the group', () => {
    const mixed = drawing('mixed', 20, {
      pictures: [
        { group: 'at 7', rows: 2 },
        { group: 'at 7', rows: 2 },
        { group: 'at 9', rows: 2 },
      ],
    });
    expect(callOf([mixed])).toEqual(['mixedx2']);
  });

  it('lets an owner wait who has had more of the engine’s time, until the others have caught up', () => {
    const greedy = many(8, 20).map((each) => ({ ...each, owner: 'greedy' }));
    expect(callOf([...greedy, drawing('modest', 100)], { greedy: 601 })).toEqual(['modestx1']);
    expect(callOf([...greedy, drawing('modest', 100)], { greedy: 599 })).toHaveLength(8);
  });

  it('draws alone whoever shared a call that failed', () => {
    const suspects = many(3, 20, { suspicion: { mostRows: Infinity } });
    expect(callOf([...suspects, drawing('innocent', 2)])).toEqual(['0x1']);
  });

  it('gives whoever failed alone half of its rows, as long as that is tried', () => {
    const suspect = drawing('suspect', 20, { count: 8, suspicion: { mostRows: 8 } });
    expect(callOf([drawing('innocent', 2), suspect])).toEqual(['suspectx4']);
  });
});

describe(notAhead.name, () => {
  it('leaves out an owner who has had more of the engine’s time than about three pictures take', () => {
    const [greedy, modest] = [{ owner: 'greedy' }, { owner: 'modest' }];
    const had = (ms: number) => sharesOf({ greedy: ms });
    expect(notAhead([greedy, modest], had(601), times())).toEqual([modest]);
    expect(notAhead([greedy, modest], had(599), times())).toEqual([greedy, modest]);
    expect(notAhead([greedy], had(601), times())).toEqual([greedy]);
  });

  it('leaves out an owner who has had more than what a drawing of another still needs takes', () => {
    const [greedy, modest] = [
      { owner: 'greedy', remainingWork: 60 },
      { owner: 'modest', remainingWork: 20 },
    ];
    const had = (ms: number) => sharesOf({ greedy: ms });
    expect(notAhead([greedy, modest, { ...modest, remainingWork: 500 }], had(101), times())).toEqual([
      modest,
      { ...modest, remainingWork: 500 },
    ]);
    expect(notAhead([greedy, modest], had(99), times())).toEqual([greedy, modest]);
    // However short the drawings of the owner who is ahead are.
    expect(notAhead([{ ...greedy, remainingWork: 1 }, modest], had(99), times())).toHaveLength(2);
  });

  it('lets a short drawing take twice as many rows as alone, and a call, beside any number of another owner’s', () => {
    // So short that each goes before the other.
    const greedy = many(20, 1, { owner: 'greedy' });
    const had: Record<string, number> = { greedy: 0, short: 0 };
    let [rowsLeft, rowsInAll] = [20, 0];
    while (rowsLeft > 0) {
      const short = drawing('short', rowsLeft / 2, { totalWork: 20 });
      const inTurn = notAhead([...greedy, short], sharesOf(had), times());
      const facts = { ...times(), maxRows: () => 16, isSharingSooner: () => false };
      for (const { candidate, pictures } of chooseCall(inOrder(inTurn, facts), facts)) {
        had[candidate.owner] += 2 * pictures.length * rowMs;
        rowsInAll += 2 * pictures.length;
        if (candidate === short) rowsLeft -= 2;
      }
    }
    expect(rowsInAll).toBeLessThanOrEqual(2 * 20 + 16);
  });

  it.each([1, 0])(
    'lets no short drawing wait for longer than it takes, whatever rows of others take (%s ms a row)',
    (knownMs) => {
      // By rows the other owner's are shorter, and by time they are 16 times as long.
      const costly = { owner: 'costly', kind: 'large', pictures: [{ group: 'large', rows: 2 }] };
      const others = many(20, 10, costly);
      const had: Record<string, number> = { costly: 0, cheap: 0 };
      // What a row of the cheap kind takes is not known in the beginning.
      const facts = {
        rowMs: (kind?: string) => (kind === 'large' ? 50 : knownMs),
        ...{ decodeRows: () => 0, maxRows: () => 16, isSharingSooner: () => false },
      };
      let rowsLeft = 60;
      while (rowsLeft > 0) {
        const cheap = drawing('cheap', rowsLeft / 2, { totalWork: 60 });
        const inTurn = notAhead([...others, cheap], sharesOf(had), facts);
        for (const { candidate, pictures } of chooseCall(inOrder(inTurn, facts), facts)) {
          had[candidate.owner] += 2 * pictures.length * (candidate === cheap ? 1 : 50);
          if (candidate === cheap) rowsLeft -= 2;
        }
      }
      const oneCallMs = 16 * 50;
      expect(had.cheap + had.costly).toBeLessThanOrEqual(2 * 60 + oneCallMs);
    },
  );
});

describe(inOrder.name, () => {
  it('begins with who was passed over too often, then goes by what is left to do, decoding included', () => {
    const many = drawing('many', 4, { count: 4 });
    const [late, one] = [drawing('late', 50, { passedOver: 30 }), drawing('one', 20)];
    const names = (decodeRows: number) => inOrder([late, one, many], times(decodeRows)).map(({ name }) => name);
    expect(names(0)).toEqual(['late', 'many', 'one']);
    expect(names(15)).toEqual(['late', 'one', 'many']);
  });
});

describe(passedOverAfter.name, () => {
  it('gives a drawing that has waited long every fourth call, however many short ones come', () => {
    const long = drawing('long', 25);
    const calls: string[] = [];
    for (let i = 0; i < 130; i++) {
      const short = drawing(`short ${i}`, 3, { kind: 'wide', pictures: [{ group: 'wide', rows: 2 }], owner: 'long' });
      const [{ candidate }] = chooseCall(inOrder([long, short], times()), {
        ...{ ...times(), maxRows: () => 16, isSharingSooner: () => false },
      });
      calls.push(candidate === long ? 'long' : 'short');
      long.passedOver = passedOverAfter(long, [candidate]);
    }
    expect(calls.indexOf('long')).toBe(30);
    expect(calls.filter((drawn) => drawn === 'long')).toHaveLength(25);
  });

  it('is no more than the wait that counts, and no less than none', () => {
    const [waiting, moved] = [drawing('long', 50, { passedOver: 200 }), drawing('short', 4, { passedOver: 1 })];
    expect(passedOverAfter(waiting, [moved, waiting])).toBe(27);
    expect(passedOverAfter(moved, [moved])).toBe(0);
    expect(passedOverAfter(moved, [{ owner: 'short' }])).toBe(2);
  });

  it('does not count the calls of other owners, whose shares decide', () => {
    expect(passedOverAfter(drawing('long', 50, { passedOver: 29 }), [drawing('short', 4)])).toBe(29);
  });
});

describe(goesAfterDrawings.name, () => {
  const load = { owner: 'loading', ms: 400 };
  const after = (msLeft: number, had: Record<string, number> = {}, owner = 'other') =>
    goesAfterDrawings(load, [{ owner, msLeft }], sharesOf(had));

  it('is so beside a drawing of another owner that would be done before', () => {
    expect([after(300), after(500), after(300, {}, 'loading')]).toEqual([true, false, false]);
  });

  it('is so no longer when others have had as much as that takes, however short what they have left', () => {
    expect([after(1, { other: 390 }), after(1, { other: 400 })]).toEqual([true, false]);
    expect(after(1, { other: 400, loading: 100 })).toBe(true);
  });
});

describe(msLeft.name, () => {
  it('is the time of its steps and of its pictures to decode', () => {
    expect(msLeft(drawing('one', 10), times(4))).toBe((2 * 10 + 4) * rowMs);
  });
});
