import type { LookupAddress } from 'node:dns';
import { DnsLookUps, lookUpsPerOwner } from './dns-look-ups';

describe(DnsLookUps.name, () => {
  const start = () => {
    const asked: string[] = [];
    const answers = new Map<string, (addresses: LookupAddress[]) => void>();
    const lookUps = new DnsLookUps((hostname) => {
      asked.push(hostname);
      return new Promise((resolve) => answers.set(hostname, resolve));
    });
    const run = (ownerId: string, hostname: string, signal = new AbortController().signal) =>
      lookUps.run(ownerId, hostname, { all: true }, signal);
    return { asked, answers, run };
  };
  const tick = () => new Promise(setImmediate);

  it('lets a caller whose names have no answer wait alone', async () => {
    const { asked, answers, run } = start();
    const addresses = [{ address: '192.0.2.1', family: 4 }];
    const first = run('a', 'dead 0');
    for (let n = 1; n < 20; n++) void run('a', `dead ${n}`);
    const other = run('b', 'alive');
    await tick();
    expect(asked).toEqual([...Array.from({ length: lookUpsPerOwner }, (_, n) => `dead ${n}`), 'alive']);
    answers.get('alive')?.(addresses);
    expect(await other).toBe(addresses);
    answers.get('dead 0')?.([]);
    await first;
    await tick();
    expect(asked).toHaveLength(lookUpsPerOwner + 2);
  });

  it('never begins a look-up that was aborted while it waited', async () => {
    const { asked, answers, run } = start();
    const stop = new AbortController();
    const before = Array.from({ length: lookUpsPerOwner }, (_, n) => run('a', `slow ${n}`));
    const late = expect(run('a', 'late', stop.signal)).rejects.toThrow('over');
    await tick();
    stop.abort(new Error('over'));
    for (const answer of answers.values()) answer([]);
    await Promise.all([...before, late]);
    expect(asked).not.toContain('late');
  });
});
