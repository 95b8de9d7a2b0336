import { StorageUnavailableError } from '@app/storage';
import { StorageRoom } from './storage-room';

describe(StorageRoom.name, () => {
  let now = 0;
  let [takesFiles, hasRoom] = [true, true];
  const said: string[] = [];
  const say = (message: string): void => void said.push(message);
  const open = () =>
    new StorageRoom(
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
    const room = open();
    hasRoom = false;
    expect(await room.isOpen()).toBe(false);
    hasRoom = true;
    expect(await room.isOpen()).toBe(true);
  });

  it.each([full, new StorageUnavailableError('507 XMinioStorageFull: no room', true)])(
    'is closed for a while after %s, longer each time until a file is stored',
    async (error) => {
      const room = open();
      expect(await room.isAtFault(error)).toBe(true);
      expect(await room.isOpen()).toBe(false);
      later(2_001);
      expect(await room.isOpen()).toBe(true);
      await room.isAtFault(error);
      later(4_001);
      for (let together = 0; together < 6; together++) await room.isAtFault(error);
      later(2_001);
      expect(await room.isOpen()).toBe(false);
      later(6_000);
      expect(await room.isOpen()).toBe(true);
      await room.isAtFault(error);
      later(60_000);
      room.stored();
      await room.isAtFault(error);
      later(2_001);
      expect(await room.isOpen()).toBe(true);
    },
  );

  it('stays closed until a store that could not be reached takes a file', async () => {
    const room = open();
    takesFiles = false;
    expect(await room.isAtFault(new StorageUnavailableError('503', true))).toBe(true);
    later(2_001);
    expect(await room.isOpen()).toBe(false);
    takesFiles = true;
    later(60_000);
    expect(await room.isOpen()).toBe(true);
    expect(said.at(-1)).toBe('the storage takes files again');
  });

  it('stays open after an error of the task, or of its own object in a store that takes files', async () => {
    const room = open();
    expect(await room.isAtFault(new Error('a defect'))).toBe(false);
    expect(await room.isAtFault(new StorageUnavailableError('403 InvalidObjectState', false))).toBe(false);
    expect(await room.isOpen()).toBe(true);
  });
});
