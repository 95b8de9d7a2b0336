import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileLock, LockHeldError } from '@app/process';

describe(FileLock.name, () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-lock-'));
  });
  afterEach(() => {
    jest.useRealTimers();
    rmSync(folder, { recursive: true });
  });

  it('is free again once released', () => {
    const file = join(folder, 'lock');
    FileLock.acquire(file).release();
    const again = FileLock.acquire(file);
    expect(again.takenOver).toBe(false);
    expect(() => FileLock.acquire(file)).toThrow(LockHeldError);
  });

  it('is taken over from a process whose id was reused by another one', () => {
    const file = join(folder, 'lock');
    writeFileSync(file, JSON.stringify({ pid: process.pid, identity: 'born before the last boot' }));
    expect(FileLock.holder(file)).toBeUndefined();
    expect(FileLock.acquire(file).takenOver).toBe(true);
    expect(FileLock.holder(file)?.pid).toBe(process.pid);
  });

  it('is left to a process that is just taking it over, unless that died too', () => {
    const file = join(folder, 'lock');
    writeFileSync(file, JSON.stringify({ pid: process.pid, identity: 'born before the last boot' }));
    const other = FileLock.acquire(`${file}.takeover`);
    expect(() => FileLock.acquire(file)).toThrow(LockHeldError);
    other.release();
    writeFileSync(`${file}.takeover`, 'unreadable');
    expect(FileLock.acquire(file).takenOver).toBe(true);
    expect(readdirSync(folder)).toEqual(['lock']);
  });

  it('keeps the address of its holder from other users', () => {
    const file = join(folder, 'lock');
    const lock = FileLock.acquire(file);
    lock.publish('postgres://darkroom:password@127.0.0.1/');
    expect(FileLock.holder(file)?.url).toContain('password');
    expect(statSync(file).mode & 0o077).toBe(0);
    lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('does not release a lock that another process has taken over', () => {
    const file = join(folder, 'lock');
    const onLost = jest.fn();
    const lost = FileLock.acquire(file, { onLost });
    rmSync(file);
    const lock = FileLock.acquire(file, { onLost });
    lost.release();
    expect(readdirSync(folder)).toEqual(['lock']);
    lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('notifies the holder of a lease that another process has taken it over', () => {
    jest.useFakeTimers();
    const file = join(folder, 'lock');
    const onLost = jest.fn();
    const lock = FileLock.acquire(file, { onLost });
    jest.advanceTimersByTime(6_000);
    expect(onLost).not.toHaveBeenCalled();
    writeFileSync(file, JSON.stringify({ pid: 1, host: 'elsewhere', key: 'another' }));
    jest.advanceTimersByTime(6_000);
    expect(onLost).toHaveBeenCalledTimes(1);
    lock.release();
    expect(readdirSync(folder)).toEqual(['lock']);
  });
});
