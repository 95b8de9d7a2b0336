import { Places } from './places';

const placesOf = (count: number): Places => new Places({ places: { count } });

describe(Places.name, () => {
  /** Takes places for an owner until it may have no other. @returns how many that were */
  function fill(places: Places, owner: string): number {
    for (let taken = 0; ; taken++) {
      if (places.full.includes(owner)) return taken;
      places.take(owner);
    }
  }

  it('gives two thirds of the places to one owner', () => {
    expect(fill(placesOf(12), 'greedy')).toBe(8);
  });

  it('keeps a place for who has none, although several owners have as many tasks as they may', () => {
    const places = placesOf(12);
    expect(['one', 'two', 'three'].map((owner) => fill(places, owner))).toEqual([8, 2, 1]);
    expect(places.full).not.toContain('a newcomer');
  });

  it('gives an owner another place when enough of them are free again', () => {
    const places = placesOf(12);
    const giveBack = Array.from({ length: 8 }, () => places.take('greedy'));
    const ends = places.take('modest');
    giveBack[0]();
    expect(places.full).toContain('greedy');
    ends();
    expect(places.full).toEqual([]);
  });

  it('gives the only place to who comes first', () => {
    const places = placesOf(1);
    expect(places.full).toEqual([]);
    places.take('first');
    expect(places.full).toEqual(['first']);
  });

  it('draws a suspected task when all others are drawn, and claims nothing until it has ended', async () => {
    const places = placesOf(4);
    const { signal } = new AbortController();
    const drawn = [await places.begin(false, signal), await places.begin(false, signal)];
    let end: (() => void) | undefined;
    const suspect = places.begin(true, signal).then((ended) => (end = ended));
    expect(places.hasRoom).toBe(false);
    drawn[0]();
    drawn[0]();
    await Promise.resolve();
    expect(end).toBeUndefined();
    drawn[1]();
    await suspect;
    expect(places.hasRoom).toBe(false);
    end!();
    expect(places.hasRoom).toBe(true);
  });

  it('claims again when a suspected task is given up while it waits', async () => {
    const places = placesOf(4);
    await places.begin(false, new AbortController().signal);
    const aborter = new AbortController();
    const suspect = places.begin(true, aborter.signal);
    aborter.abort();
    await expect(suspect).rejects.toThrow('given up');
    expect(places.hasRoom).toBe(true);
  });
});
