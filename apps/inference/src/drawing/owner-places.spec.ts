import { OwnerPlaces } from './owner-places';

describe(OwnerPlaces.name, () => {
  /** Takes places for an owner until it may have no other. @returns how many that were */
  function fill(places: OwnerPlaces, owner: string): number {
    for (let taken = 0; ; taken++) {
      if (places.full.includes(owner)) return taken;
      places.take(owner);
    }
  }

  it('gives two thirds of the places to one owner', () => {
    expect(fill(new OwnerPlaces(12), 'greedy')).toBe(8);
  });

  it('keeps a place for who has none, although several owners have as many tasks as they may', () => {
    const places = new OwnerPlaces(12);
    expect(['one', 'two', 'three'].map((owner) => fill(places, owner))).toEqual([8, 2, 1]);
    expect(places.full).not.toContain('a newcomer');
  });

  it('gives an owner another place when enough of them are free again', () => {
    const places = new OwnerPlaces(12);
    const giveBack = Array.from({ length: 8 }, () => places.take('greedy'));
    const ends = places.take('modest');
    giveBack[0]();
    expect(places.full).toContain('greedy');
    ends();
    expect(places.full).toEqual([]);
  });

  it('gives the only place to who comes first', () => {
    const places = new OwnerPlaces(1);
    expect(places.full).toEqual([]);
    places.take('first');
    expect(places.full).toEqual(['first']);
  });
});
