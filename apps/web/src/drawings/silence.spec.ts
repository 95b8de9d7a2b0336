import { Silence } from './silence';

describe(Silence.name, () => {
  it('names a picture of which no step has come for five seconds, until one does', () => {
    const silence = new Silence();
    for (const now of [0, 300, 700]) silence.step('a', now);
    expect(silence.silent(5_700)).toEqual([]);
    expect(silence.silent(5_701)).toEqual(['a']);
    silence.step('a', 6_000);
    expect(silence.silent(6_001)).toEqual([]);
  });

  it('waits three times as long as the slowest step took', () => {
    const silence = new Silence();
    silence.step('a', 0);
    silence.step('a', 4_000);
    expect(silence.silent(16_000)).toEqual([]);
    expect(silence.silent(16_001)).toEqual(['a']);
  });

  it('does not count the time for which there is an excuse, and knows nothing of what was forgotten', () => {
    const silence = new Silence();
    silence.step('a', 0);
    silence.excuse('a', 60_000);
    silence.excuse('b', 60_000);
    expect(silence.silent(65_000)).toEqual([]);
    silence.forget('a');
    expect(silence.silent(99_000)).toEqual([]);
  });
});
