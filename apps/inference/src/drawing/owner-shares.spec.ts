import { OwnerShares } from './owner-shares';

describe(OwnerShares.name, () => {
  /** Takes slots for an owner until it may have no other. @returns how many that were */
  function fill(shares: OwnerShares, owner: string): number {
    for (let taken = 0; ; taken++) {
      if (shares.full.includes(owner)) return taken;
      shares.take(owner);
    }
  }

  it('gives two thirds of the slots to one owner', () => {
    expect(fill(new OwnerShares(12), 'greedy')).toBe(8);
  });

  it('keeps a slot for who has none, although several owners have as many tasks as they may', () => {
    const shares = new OwnerShares(12);
    expect(['one', 'two', 'three'].map((owner) => fill(shares, owner))).toEqual([8, 2, 1]);
    expect(shares.full).not.toContain('a newcomer');
  });

  it('gives an owner another slot when enough of them are free again', () => {
    const shares = new OwnerShares(12);
    const giveBack = Array.from({ length: 8 }, () => shares.take('greedy'));
    const ends = shares.take('modest');
    giveBack[0]();
    expect(shares.full).toContain('greedy');
    ends();
    expect(shares.full).toEqual([]);
  });

  it('gives the only slot to who comes first', () => {
    const shares = new OwnerShares(1);
    expect(shares.full).toEqual([]);
    shares.take('first');
    expect(shares.full).toEqual(['first']);
    expect(shares.hasFree).toBe(false);
  });
});
