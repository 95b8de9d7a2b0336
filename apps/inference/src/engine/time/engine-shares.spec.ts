import { EngineShares } from './engine-shares';

describe(EngineShares.name, () => {
  it('lets a newcomer start level with the owner who has had least', () => {
    const shares = new EngineShares();
    for (const owner of ['first', 'second']) shares.enter(owner);
    shares.charge('first', 900);
    shares.charge('second', 400);
    shares.enter('third');
    expect([shares.of('first'), shares.of('second'), shares.of('third')]).toEqual([900, 400, 400]);
  });

  it('lets newcomers go before an owner who is ahead for as long as it is ahead, and not for good', () => {
    const shares = new EngineShares();
    for (const owner of ['ahead', 'newcomer 0']) shares.enter(owner);
    shares.charge('ahead', 1_000);
    let newcomersMs = 0;
    // Before each leaves, the next is there, so that the least that anybody has had does not rise.
    for (let i = 1; i < 1_000 && shares.of('ahead') > shares.of(`newcomer ${i - 1}`) + 50; i++) {
      shares.enter(`newcomer ${i}`);
      shares.charge(`newcomer ${i - 1}`, 10);
      newcomersMs += 10;
      shares.leave(`newcomer ${i - 1}`);
    }
    expect(newcomersMs).toBeGreaterThan(400);
    expect(newcomersMs).toBeLessThanOrEqual(1_010);
  });

  it('takes nothing off for an owner who was there before, and is behind', () => {
    const shares = new EngineShares();
    for (const owner of ['one', 'two']) shares.enter(owner);
    shares.charge('one', 900);
    shares.charge('two', 400);
    expect(shares.of('one')).toBe(900);
  });

  it('keeps what an owner has had while it draws, and forgets it afterwards', () => {
    const shares = new EngineShares();
    shares.enter('one');
    shares.charge('one', 500);
    shares.enter('one');
    expect(shares.of('one')).toBe(500);
    shares.leave('one');
    shares.enter('one');
    expect(shares.of('one')).toBe(0);
  });

  it('charges an owner also for what never begins, while others are there', () => {
    const shares = new EngineShares();
    for (const owner of ['failing', 'other']) shares.wait(owner);
    shares.charge('failing', 300);
    expect([shares.of('failing'), shares.of('other')]).toEqual([300, 0]);
    shares.leave('failing');
    shares.wait('failing');
    expect(shares.of('failing')).toBe(300);
    shares.leave('other');
    shares.leave('failing');
    expect(shares.of('failing')).toBe(0);
  });

  it('tells once for how long calls have blocked the thread, whether anything goes on beside them or not', () => {
    const shares = new EngineShares();
    for (const ms of [30, 12]) shares.noteBlocked(ms);
    expect([shares.takeBlocked(), shares.takeBlocked()]).toEqual([42, 0]);
  });

  it('divides the time between works that go on at once', async () => {
    let now = 0;
    const shares = new EngineShares(() => now);
    for (const owner of ['merging', 'loading']) shares.enter(owner);
    const ends: (() => void)[] = [];
    const begin = (owner: string) => shares.chargeFor(owner, () => new Promise<void>((resolve) => ends.push(resolve)));
    const merging = begin('merging');
    now = 50;
    const loading = begin('loading');
    now = 100;
    ends[0]();
    await merging;
    now = 150;
    ends[1]();
    await loading;
    expect([shares.of('merging'), shares.of('loading')]).toEqual([75, 75]);
  });

  it('takes nothing off for calls beside the work, nor for what a call took before it began', async () => {
    let now = 1_000;
    const shares = new EngineShares(() => now);
    for (const owner of ['merging', 'drawing']) shares.enter(owner);
    await shares.chargeFor('merging', async () => {
      now += 100;
      shares.charge('drawing', 100);
    });
    expect(shares.of('merging')).toBe(100);
    await shares.chargeFor('merging', async () => {
      now += 10;
      shares.noteBlocked(1_000);
      now += 30;
    });
    expect(shares.of('merging')).toBe(130);
  });

  it('charges for work what passes while the thread is at no call, also where it fails', async () => {
    let now = 0;
    const shares = new EngineShares(() => now);
    for (const owner of ['merging', 'drawing']) shares.enter(owner);
    const work = shares.chargeFor('merging', async () => {
      now += 100;
      shares.charge('drawing', 70);
      shares.noteBlocked(70);
      throw new Error('it does not fit');
    });
    await expect(work).rejects.toThrow('it does not fit');
    expect([shares.of('merging'), shares.of('drawing')]).toEqual([30, 70]);
  });

  it('charges an owner who has gone for what was given up', () => {
    const shares = new EngineShares();
    for (const owner of ['steady', 'gone']) shares.enter(owner);
    shares.leave('gone');
    shares.charge('gone', 300);
    shares.enter('gone');
    expect([shares.of('steady'), shares.of('gone')]).toEqual([0, 300]);
  });

  it('keeps what an owner has had while it waits to begin', () => {
    const shares = new EngineShares();
    for (const owner of ['one', 'two']) shares.enter(owner);
    shares.charge('one', 500);
    shares.leave('one', true);
    shares.charge('two', 900);
    shares.enter('one');
    // As a newcomer would, it begins level with those who draw.
    expect(shares.of('one')).toBe(900);
  });

  it('does not let an owner begin anew who comes and goes while others draw', () => {
    const shares = new EngineShares();
    for (const owner of ['steady', 'often']) shares.enter(owner);
    shares.charge('often', 500);
    shares.charge('steady', 100);
    shares.leave('often');
    shares.enter('often');
    expect(shares.of('often')).toBe(500);
    shares.leave('often');
    shares.charge('steady', 900);
    shares.enter('often');
    expect(shares.of('often')).toBe(1000);
  });
});
