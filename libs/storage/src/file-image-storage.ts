import { createReadStream } from 'node:fs';
import { access, constants, mkdir, open, readdir, rename, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { diskRoom } from './disk-room';
import { type ByteRange, type ImageStorage, StorageUnavailableError, type StoredObject } from './image-storage';

/** Suffix of a file that is still being written; after a crash `list` finds it, and the sweeper removes it. */
const partSuffix = '.part';

/** How often a folder is made for a file, when others remove it at the same time. */
const maxFolderTries = 10;

/** Objects as files in one folder. Each is written beside its final path, synced and renamed. */
export class FileImageStorage implements ImageStorage {
  private readonly root: string;

  constructor(root: string) {
    this.root = resolve(root);
  }

  async write(key: string, data: Uint8Array | Readable): Promise<void> {
    const path = this.pathOf(key);
    const part = `${path}.${randomBytes(6).toString('hex')}${partSuffix}`;
    const source = data instanceof Readable ? data : Readable.from([data]);
    // It may fail before it is read; then the pipeline reports it.
    source.on('error', () => undefined);
    try {
      const file = await inFolder(dirname(path), () => open(part, 'w'));
      await pipeline(source, file.createWriteStream({ flush: true }));
      await rename(part, path);
      await syncFile(dirname(path));
    } catch (error) {
      source.destroy();
      await rm(part, { force: true });
      throw error;
    }
  }

  /** A move costs nothing, however large the file is; another file system needs a copy. */
  async adopt(key: string, path: string): Promise<void> {
    const target = this.pathOf(key);
    await syncFile(path);
    // An object's age begins now; old ones that no row names are removed.
    const now = new Date();
    await utimes(path, now, now);
    try {
      await inFolder(dirname(target), () => rename(path, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
      return this.write(key, createReadStream(path));
    }
    await syncFile(dirname(target));
  }

  async read(key: string, range?: ByteRange): Promise<{ stream: Readable; bytes: number } | undefined> {
    try {
      const file = await open(this.pathOf(key));
      const { size } = await file.stat();
      return { stream: file.createReadStream(range), bytes: range ? range.end - range.start + 1 : size };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  async removeAll(prefix: string): Promise<void> {
    const path = this.pathOf(prefix.replace(/(?<!\/)\/+$/, ''));
    await rm(path, { recursive: true, force: true });
    // Removes an empty parent folder; one that is not empty, or already gone, is left.
    if (dirname(path) !== this.root) await rmdir(dirname(path)).catch(() => undefined);
  }

  async *list(prefix = ''): AsyncIterable<StoredObject> {
    const start = prefix ? this.pathOf(prefix) : this.root;
    let names;
    try {
      names = await readdir(start, { withFileTypes: true, recursive: true });
    } catch (error) {
      if (isAbsent(error)) return;
      throw error;
    }
    for (const entry of names) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const found = await stat(path).catch(() => undefined);
      if (found)
        yield { key: relative(this.root, path).split(sep).join('/'), bytes: found.size, modifiedAt: found.mtime };
    }
  }

  async localPath(key: string): Promise<string> {
    const path = this.pathOf(key);
    await access(path);
    return path;
  }

  async hasRoom(): Promise<boolean> {
    return (await diskRoom(this.root))?.hasRoom ?? true;
  }

  async check(): Promise<void> {
    await mkdir(this.root, { recursive: true });
    await access(this.root, constants.W_OK);
    if (!(await this.hasRoom())) throw new StorageUnavailableError('its disk is full', true);
  }

  private pathOf(key: string): string {
    const path = resolve(this.root, key);
    if (!path.startsWith(this.root + sep)) throw new Error(`"${key}" is no key inside the storage.`);
    return path;
  }
}

/**
 * Puts a file into a folder, which is made if needed. Whoever removes the last file of a folder also removes the folder
 * and its empty parents, maybe at the same time.
 */
async function inFolder<T>(folder: string, put: () => Promise<T>): Promise<T> {
  for (let left = maxFolderTries - 1; ; left--) {
    try {
      await mkdir(folder, { recursive: true });
      return await put();
    } catch (error) {
      if (left === 0 || !isAbsent(error)) throw error;
    }
  }
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR';
}
