import { Arena } from './arena';

describe(Arena.name, () => {
  it('holds what every call took that was larger than all before it', () => {
    const arena = new Arena();
    for (const bytes of [2, 4, 3, 6, 6]) arena.note(bytes);
    expect([arena.bytes, arena.largestCall]).toEqual([12, 6]);
  });

  it('grows only for a larger call, by all that it takes', () => {
    const arena = new Arena();
    arena.note(4);
    expect([arena.growth(4), arena.growth(5)]).toEqual([0, 5]);
  });
});
