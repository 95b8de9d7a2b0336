import { LanePlaces } from './lane-places';

describe(LanePlaces.name, () => {
  let places: LanePlaces;
  let end: (() => void)[];

  beforeEach(() => {
    places = new LanePlaces(2);
    end = [];
  });

  const begin = (lane: number): void => places.begin(lane, () => new Promise((resolve) => (end[lane] = resolve)));

  it('gives each lane one piece of work at a time', async () => {
    expect(places.free).toBe(0);
    begin(0);
    expect(places.free).toBe(1);
    begin(1);
    expect(places.free).toBeUndefined();
    end[0]();
    await places.change();
    expect(places.free).toBe(0);
    expect(places.areIdle).toBe(false);
  });

  it('lets who waits look again when a lane has ended its piece, or is told to', async () => {
    begin(0);
    let looked = 0;
    const waiting = places.change().then(() => looked++);
    places.wake();
    await waiting;
    end[0]();
    await places.idle();
    expect(looked).toBe(1);
    expect(places.areIdle).toBe(true);
  });

  it('does not miss a change between two looks', async () => {
    places.wake();
    await expect(places.change()).resolves.toBeUndefined();
  });

  it('lets several wait for the changes after the last one that each has seen', async () => {
    const { changeCount } = places;
    const first = places.change(changeCount);
    places.wake();
    await first;
    await places.change(changeCount);
    let looked = 0;
    const both = [places.changeCount, places.changeCount].map((since) => places.change(since).then(() => looked++));
    expect(looked).toBe(0);
    places.wake();
    await Promise.all(both);
    expect(looked).toBe(2);
  });

  it('begins nothing more beside a piece that takes longer than hundreds of others', async () => {
    begin(0);
    let begun = 0;
    while (places.free === 1 && begun < 10_000) {
      places.begin(1, async () => undefined);
      begun++;
      await places.change();
    }
    expect(begun).toBe(300);
    end[0]();
    await places.idle();
    expect(places.free).toBe(0);
  });
});
