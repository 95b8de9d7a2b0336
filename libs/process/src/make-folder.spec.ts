import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from './make-folder';

describe(makeFolder.name, () => {
  let folder: string;

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'make-folder-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it('makes a folder and those it is in, with their permissions, and leaves what is there', () => {
    const path = join(folder, 'a', 'b');
    makeFolder(path, 0o700);
    writeFileSync(join(path, 'kept'), '');
    makeFolder(path);
    expect([statSync(join(folder, 'a')).mode & 0o777, statSync(path).mode & 0o777]).toEqual([0o700, 0o700]);
    expect(statSync(join(path, 'kept')).isFile()).toBe(true);
  });

  it('takes a link to a folder for one', () => {
    symlinkSync(folder, join(folder, 'link'));
    makeFolder(join(folder, 'link', 'a'));
    expect(statSync(join(folder, 'a')).isDirectory()).toBe(true);
  });

  it('fails where a file has that name', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => makeFolder(join(folder, 'file'))).toThrow('EEXIST');
    expect(() => makeFolder(join(folder, 'file', 'a'))).toThrow('ENOTDIR');
  });

  it('fails at once where no folder can be made', () => {
    expect(() => makeFolder('/proc/darkroom/data')).toThrow('ENOENT');
  });
});
