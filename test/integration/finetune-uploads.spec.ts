import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { BodyTooLargeError, ServiceUnavailableError } from '@app/domain';
import { mapDiskErrors, receiveFile, UploadStalledError } from '../../apps/api/src/http/receive-file';

describe(receiveFile.name, () => {
  let folder: string;
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-receive-'));
    path = join(folder, 'file');
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('writes the file and returns its hash', async () => {
    const { hash, bytes } = await receiveFile(Readable.from([Buffer.from('a'), Buffer.from('bc')]), path, {
      maxBytes: 3,
    });
    expect([await readFile(path, 'utf8'), bytes]).toEqual(['abc', 3]);
    // FIPS 180-2, appendix B.1.
    expect(hash).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });

  it('syncs a large file piece by piece, so that nothing else that is synced waits for all of it', async () => {
    const other = await open(path, 'w');
    const datasync = jest.spyOn(Object.getPrototypeOf(other) as FileHandle, 'datasync');
    await other.close();
    const mebibytes = Readable.from(Array.from({ length: 9 }, () => Buffer.alloc(2 ** 20)));
    await receiveFile(mebibytes, `${path}2`, { maxBytes: 1e8 });
    expect(datasync).toHaveBeenCalledTimes(2);
    datasync.mockRestore();
  });

  it('rejects one byte too many', async () => {
    const sender = new PassThrough();
    sender.end(Buffer.from('abcd'));
    await expect(receiveFile(sender, path, { maxBytes: 3 })).rejects.toThrow(BodyTooLargeError);
  });

  it('aborts an upload that makes no progress, and no other', async () => {
    // Both are a factor of ten from the limit, however unevenly a busy machine lets them send.
    const pace = { bytes: 400, windowMs: 1_000 };
    const slow = new PassThrough();
    const trickle = setInterval(() => slow.write(Buffer.from('a')), 25);
    await expect(receiveFile(slow, path, { maxBytes: 1e6, progress: pace })).rejects.toThrow(UploadStalledError);
    clearInterval(trickle);
    const steady = new PassThrough();
    let left = 50;
    const stream = setInterval(() => (left-- > 0 ? steady.write(Buffer.alloc(100)) : steady.end()), 25);
    const { bytes } = await receiveFile(steady, `${path}2`, { maxBytes: 1e6, progress: pace });
    clearInterval(stream);
    expect(bytes).toBe(5_000);
  });

  it('aborts an upload that sends bursts at long intervals', async () => {
    const sender = new PassThrough();
    const pace = { bytes: 400, windowMs: 2_000 };
    const received = receiveFile(sender, path, { maxBytes: 1e6, progress: pace });
    sender.write(Buffer.alloc(1_000));
    // Two consecutive windows would each contain a burst.
    const second = setTimeout(() => sender.write(Buffer.alloc(1_000)), 1.7 * pace.windowMs);
    await expect(received).rejects.toThrow(UploadStalledError);
    clearTimeout(second);
  });

  it('checks the disk space before and while it writes', async () => {
    let asked = 0;
    const assertRoom = async (): Promise<void> => {
      asked++;
      if (asked === 3) throw new ServiceUnavailableError('full');
    };
    const chunks = Array.from({ length: 20 }, () => Buffer.alloc(2 ** 20));
    const options = { maxBytes: 1e9, assertRoom };
    await expect(receiveFile(Readable.from(chunks), path, options)).rejects.toThrow('full');
    expect(asked).toBe(3);
    expect((await readFile(path)).length).toBe(7 * 2 ** 20);
  });
});

describe(mapDiskErrors.name, () => {
  it.each(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EIO'])('reports %s as an outage', async (code) => {
    await expect(mapDiskErrors(Promise.reject(Object.assign(new Error('full'), { code })))).rejects.toThrow(
      ServiceUnavailableError,
    );
  });

  it('passes every other failure through', async () => {
    const error = Object.assign(new Error('no'), { code: 'EMFILE' });
    await expect(mapDiskErrors(Promise.reject(error))).rejects.toBe(error);
  });
});
