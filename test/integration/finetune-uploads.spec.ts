import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { BodyTooLargeError, MalformedBodyError, ServiceUnavailableError } from '../../apps/api/src/http/http-errors';
import { onDisk, receiveFile } from '../../apps/api/src/finetunes/receive-file';

describe(receiveFile.name, () => {
  let folder: string;
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-receive-'));
    path = join(folder, 'file');
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('writes what comes and answers with its hash', async () => {
    const { hash, bytes } = await receiveFile(Readable.from([Buffer.from('a'), Buffer.from('bc')]), path, {
      maxBytes: 3,
    });
    expect([await readFile(path, 'utf8'), bytes]).toEqual(['abc', 3]);
    // FIPS 180-2, appendix B.1.
    expect(hash).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });

  it('refuses one byte too many, however it is announced', async () => {
    const sender = new PassThrough();
    sender.end(Buffer.from('abcd'));
    await expect(receiveFile(sender, path, { maxBytes: 3 })).rejects.toThrow(BodyTooLargeError);
  });

  it('refuses what is announced too large without a file', async () => {
    const sender = new PassThrough();
    sender.end(Buffer.from('abcd'));
    await expect(receiveFile(sender, path, { maxBytes: 3, declaredBytes: 4 })).rejects.toThrow(BodyTooLargeError);
    await expect(readFile(path)).rejects.toThrow('ENOENT');
  });

  it('lets a sender that is refused end its sending', async () => {
    const sender = new PassThrough({ highWaterMark: 1 });
    sender.write(Buffer.from('abcd'));
    const refused = expect(receiveFile(sender, path, { maxBytes: 3 })).rejects.toThrow(BodyTooLargeError);
    sender.end(Buffer.from('efgh'));
    await refused;
    expect(sender.readableEnded).toBe(true);
  });

  it('says that it broke off', async () => {
    const sender = new PassThrough();
    sender.write(Buffer.from('a'));
    const received = expect(receiveFile(sender, path, { maxBytes: 3 })).rejects.toThrow(MalformedBodyError);
    sender.destroy(new Error('aborted'));
    await received;
  });

  it('refuses an empty body', async () => {
    await expect(receiveFile(Readable.from([]), path, { maxBytes: 3 })).rejects.toThrow(MalformedBodyError);
  });
});

describe(onDisk.name, () => {
  it.each(['ENOSPC', 'EDQUOT'])('makes an outage of %s', async (code) => {
    await expect(onDisk(Promise.reject(Object.assign(new Error('full'), { code })))).rejects.toThrow(
      ServiceUnavailableError,
    );
  });

  it('leaves every other failure as it is', async () => {
    const error = Object.assign(new Error('no'), { code: 'EACCES' });
    await expect(onDisk(Promise.reject(error))).rejects.toBe(error);
  });
});
