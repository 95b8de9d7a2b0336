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
