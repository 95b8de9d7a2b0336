import { StorageUnavailableError } from '@app/storage';
import { StorageHealth } from './storage-health';

describe(StorageHealth.name, () => {
  let now = 0;
  let [takesFiles, hasRoom] = [true, true];
  const said: string[] = [];
  const say = (message: string): void => void said.push(message);
  const open = () =>
    new StorageHealth(
      {
        hasRoom: async () => hasRoom,
        check: async () => {
          if (!takesFiles) throw new StorageUnavailableError('503', true);
        },
      },
      { log: say, warn: say, warnSparingly: say },
    );
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  const later = (ms: number): void => void (now += ms);
  beforeEach(() => {
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    [takesFiles, hasRoom] = [true, true];
    said.length = 0;
  });
  afterEach(() => jest.restoreAllMocks());

  it('is closed while the disk is nearly full, before anything is drawn in vain', async () => {
    const health = open();
    hasRoom = false;
    expect(await health.isWritable()).toBe(false);
    hasRoom = true;
    expect(await health.isWritable()).toBe(true);
  });

  it.each([full, new StorageUnavailableError('507 XMinioStorageFull: no room', true)])(
    'is closed for a while after %s, longer each time until a file is stored',
    async (error) => {
      const health = open();
      expect(await health.isAtFault(error)).toBe(true);
      expect(await health.isWritable()).toBe(false);
      later(2_001);
      expect(await health.isWritable()).toBe(true);
      await health.isAtFault(error);
      later(4_001);
      for (let together = 0; together < 6; together++) await health.isAtFault(error);
      later(2_001);
      expect(await health.isWritable()).toBe(false);
      later(6_000);
      expect(await health.isWritable()).toBe(true);
      await health.isAtFault(error);
      later(60_000);
      health.stored();
      await health.isAtFault(error);
      later(2_001);
      expect(await health.isWritable()).toBe(true);
    },
  );

  it('stays closed until a store that could not be reached takes a file', async () => {
    const health = open();
    takesFiles = false;
    expect(await health.isAtFault(new StorageUnavailableError('503', true))).toBe(true);
    later(2_001);
    expect(await health.isWritable()).toBe(false);
    takesFiles = true;
    later(60_000);
    expect(await health.isWritable()).toBe(true);
    expect(said.at(-1)).toBe('the storage takes files again');
  });

  it('is closed from the start while the storage takes nothing, and says why', async () => {
    const health = open();
    takesFiles = false;
    expect(await health.isWritable()).toBe(false);
    expect(said).toEqual(['nothing is claimed: the storage takes no files']);
    takesFiles = true;
    later(2_001);
    expect(await health.isWritable()).toBe(true);
  });

  it('is closed after an error of a disk that is read-only, or of another owner', async () => {
    const health = open();
    expect(await health.isWritable()).toBe(true);
    takesFiles = false;
    const denied = Object.assign(new Error('permission denied'), { code: 'EACCES', syscall: 'mkdir' });
    expect(await health.isAtFault(denied)).toBe(true);
    expect(await health.isWritable()).toBe(false);
  });

  it('stays open after an error of the task, or of its own object in a store that takes files', async () => {
    const health = open();
    expect(await health.isAtFault(new Error('a defect'))).toBe(false);
    expect(await health.isAtFault(new StorageUnavailableError('403 InvalidObjectState', false))).toBe(false);
    expect(await health.isWritable()).toBe(true);
  });
});
