import { LruMap } from './lru-map';

describe(LruMap.name, () => {
  const of = (...keys: string[]) => {
    const map = new LruMap<string>(3);
    for (const key of keys) map.set(key, key.toUpperCase());
    return map;
  };
  const keysOf = (map: LruMap<string>) => map.list().map(([key]) => key);

  it('forgets what was set or read longest ago once there is too much', () => {
    const map = of('a', 'b', 'c');
    expect(map.get('a')).toBe('A');
    map.set('b', 'again');
    map.set('d', 'D');
    expect(map.list()).toEqual([
      ['a', 'A'],
      ['b', 'again'],
      ['d', 'D'],
    ]);
    expect(map.get('c')).toBeUndefined();
  });

  it('has room again for what was deleted', () => {
    const map = of('a', 'b', 'c');
    map.delete('b');
    map.set('d', 'D');
    expect(keysOf(map)).toEqual(['a', 'c', 'd']);
  });

  it('keeps no key that was only asked for', () => {
    const map = of('a');
    expect(map.get('b')).toBeUndefined();
    expect(keysOf(map)).toEqual(['a']);
  });
});
