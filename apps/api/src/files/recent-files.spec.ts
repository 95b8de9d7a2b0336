import { RecentFiles } from './recent-files';

describe(RecentFiles.name, () => {
  const file = (bytes: number): Uint8Array => new Uint8Array(bytes);
  const keysIn = (files: RecentFiles, keys: string): string => [...keys].filter((key) => files.get(key)).join('');

  it('keeps what was asked for last, within its bytes', () => {
    const files = new RecentFiles(100);
    for (const key of 'abc') files.set(key, file(30));
    files.get('a');
    files.set('d', file(30));
    expect(keysIn(files, 'abcd')).toBe('acd');
    files.set('e', file(100));
    expect(keysIn(files, 'abcde')).toBe('e');
  });

  it('counts a file that is replaced once, and does not take one that is larger than all', () => {
    const files = new RecentFiles(100);
    for (let n = 0; n < 10; n++) files.set('a', file(60));
    files.set('b', file(40));
    files.set('c', file(101));
    expect(keysIn(files, 'abc')).toBe('ab');
  });
});
