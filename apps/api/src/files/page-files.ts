import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { Injectable } from '@nestjs/common';

const compressions = { br: promisify(brotliCompress), gzip: promisify(gzip) };
export type Encoding = keyof typeof compressions;
/** Most preferred first. */
export const encodings = Object.keys(compressions) as Encoding[];

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};

/** One file of the page. */
export interface PageFile {
  contentType: string;
  etag: string;
  bytes: Buffer;
  /** Its bytes, compressed at the first request: few files are ever asked for in every encoding. */
  encoded: (encoding: Encoding) => Promise<Buffer>;
}

/** `dist/apps/web`, also when the sources run directly. */
const builtPage = __dirname.includes(`${sep}dist${sep}`)
  ? join(__dirname, '..', '..', '..', 'web')
  : join(__dirname, '..', '..', '..', '..', 'dist', 'apps', 'web');

/** The files of the built page: a few, read once and kept in memory. */
@Injectable()
export class PageFiles {
  private files?: Promise<ReadonlyMap<string, PageFile>>;

  /**
   * @param path below the page's folder, such as `index.html`; it may be any text, because only existing files are
   * found.
   */
  async find(path: string): Promise<PageFile | undefined> {
    this.files ??= readAll(builtPage);
    // A failed read is not remembered.
    this.files.catch(() => (this.files = undefined));
    return (await this.files).get(path);
  }
}

async function readAll(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const served = paths.filter((path) => extname(path) in contentTypes);
  return new Map(
    await Promise.all(
      served.map(async (path) => [path.slice(folder.length + 1).replaceAll(sep, '/'), await read(path)] as const),
    ),
  );
}

async function read(path: string): Promise<PageFile> {
  const bytes = await readFile(path);
  const made = new Map<Encoding, Promise<Buffer>>();
  return {
    contentType: contentTypes[extname(path)],
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    bytes,
    encoded(encoding) {
      const found = made.get(encoding) ?? compress(bytes, encoding);
      made.set(encoding, found);
      return found;
    },
  };
}

function compress(bytes: Buffer, encoding: Encoding): Promise<Buffer> {
  if (encoding === 'gzip') return compressions.gzip(bytes, { level: 9 });
  return compressions.br(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
}
