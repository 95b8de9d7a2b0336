import { Changes } from './changes';
import { LanePlaces } from './lane-places';

describe(LanePlaces.name, () => {
  let changes: Changes;
  let places: LanePlaces;
  let end: (() => void)[];

  beforeEach(() => {
    changes = new Changes();
    places = new LanePlaces(2, changes);
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
    await changes.next();
    expect(places.free).toBe(0);
    expect(places.areIdle).toBe(false);
  });

  it('lets who waits look again when a lane has ended its piece, or is told to', async () => {
    begin(0);
    let looked = 0;
    const waiting = changes.next().then(() => looked++);
    changes.note();
    await waiting;
    end[0]();
    await places.idle();
    expect(looked).toBe(1);
    expect(places.areIdle).toBe(true);
  });

  it('begins nothing more beside a piece that takes longer than hundreds of others', async () => {
    begin(0);
    let begun = 0;
    while (places.free === 1 && begun < 10_000) {
      places.begin(1, async () => undefined);
      begun++;
      await changes.next();
    }
    expect(begun).toBe(300);
    end[0]();
    await places.idle();
    expect(places.free).toBe(0);
  });
});
