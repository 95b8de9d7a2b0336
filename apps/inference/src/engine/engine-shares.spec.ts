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
