import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { DumpContents } from '@app/database';
import { makeFolder } from '@app/process';
import { CliError } from '../run-program';

/**
 * A backup is a folder of plain files:
 *   manifest.json          the tables, and the models that are to be installed
 *   database/<table>.gz    rows, in PostgreSQL's text format of COPY
 *   files/<key>            pictures and weights
 *   api-key                the first key, if the data folder has it
 *   SHA256SUMS             a checksum for each of them, as `sha256sum --check` reads it
 * SHA256SUMS is written last, so a folder without it is unfinished.
 */
const sumsFile = 'SHA256SUMS';
export const manifestFile = 'manifest.json';
export const keyFile = 'api-key';
export const tablesFolder = 'database';
export const filesFolder = 'files';
const format = 1;
export const atATime = { concurrency: 8 };

/** A model of the backed-up service; its files are not part of the backup. */
export interface BackedUpModel {
  name: string;
  /** Content hash, sha256 in hexadecimal. */
  hash: string;
  /** Where `npm run models -- add` found it. */
  source?: string;
}

export interface Manifest {
  format: number;
  /** ISO 8601: the moment whose state it has. */
  made_at: string;
  /** Without the manifest and the checksums. */
  files: number;
  database: DumpContents;
  models: BackedUpModel[];
}

export class NewBackup {
  private readonly sums = new Map<string, string>();

  private constructor(private readonly folder: string) {}

  /** @throws CliError if the folder is there and is not empty. */
  static async in(folder: string): Promise<NewBackup> {
    makeFolder(folder, 0o700);
    if ((await readdir(folder)).length > 0)
      throw new CliError(`The folder ${folder} is not empty: name a new one. Nothing was changed.`);
    return new NewBackup(folder);
  }

  /** @param path relative, with `/` @returns its bytes */
  async write(path: string, source: Readable): Promise<number> {
    const target = join(this.folder, path);
    await mkdir(dirname(target), { recursive: true });
    const sum = hashed(source);
    await pipeline(sum.data, createWriteStream(target, { mode: 0o600 }));
    this.sums.set(path, sum.digest());
    return sum.bytes();
  }

  /** Writes the manifest, and then the checksums, which make the backup complete. */
  async finish(manifest: Omit<Manifest, 'format' | 'files'>): Promise<void> {
    const text = `${JSON.stringify({ format, files: this.sums.size, ...manifest }, undefined, 2)}\n`;
    await this.writeDurably(manifestFile, text);
    this.sums.set(manifestFile, createHash('sha256').update(text).digest('hex'));
    await this.writeDurably(sumsFile, [...this.sums].map(([path, digest]) => `${digest}  ${path}\n`).join(''));
  }

  private async writeDurably(path: string, text: string): Promise<void> {
    await writeFile(join(this.folder, path), text, { mode: 0o600, flag: 'wx', flush: true });
  }
}

/** A complete backup whose files are as they were written. */
export class VerifiedBackup {
  private constructor(
    readonly folder: string,
    readonly manifest: Manifest,
    private readonly paths: ReadonlySet<string>,
  ) {}

  /** Reads the whole backup. @throws CliError if it is unfinished, damaged or not one. */
  static async open(folder: string): Promise<VerifiedBackup> {
    const sums = await readSums(folder);
    const damaged: string[] = [];
    for (const [path, digest] of sums) if ((await digestOf(join(folder, path))) !== digest) damaged.push(path);
    if (damaged.length > 0)
      throw new CliError(
        `The backup ${folder} is damaged: ${damaged.length === 1 ? 'a file does' : `${damaged.length} files do`} not have the checksum of ${sumsFile}, the first is ${damaged[0]}. Nothing was changed.`,
      );
    const manifest = JSON.parse(await readFile(join(folder, manifestFile), 'utf8')) as Manifest;
    if (manifest.format !== format)
      throw new CliError(
        `The backup ${folder} has format ${manifest.format}, and this version of Darkroom reads format ${format}: restore it with the version that made it.`,
      );
    if (sums.size !== manifest.files + 1)
      throw new CliError(`The backup ${folder} is damaged: ${sumsFile} lacks files. Nothing was changed.`);
    return new VerifiedBackup(folder, manifest, new Set(sums.keys()));
  }

  has(path: string): boolean {
    return this.paths.has(path);
  }

  read(path: string): Readable {
    return createReadStream(join(this.folder, path));
  }

  keys(): string[] {
    const prefix = `${filesFolder}/`;
    return [...this.paths].filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
  }
}

async function readSums(folder: string): Promise<Map<string, string>> {
  if (!existsSync(folder))
    throw new CliError(
      `There is no folder ${folder}: the argument <folder> names what "npm run backup" has made. Nothing was changed.`,
    );
  const text = await readFile(join(folder, sumsFile), 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new CliError(`${folder} is no complete backup: it has no file ${sumsFile}. Nothing was changed.`);
  const sums = new Map<string, string>();
  for (const line of text.split('\n').slice(0, -1)) {
    const [, digest, path] = /^([0-9a-f]{64}) {2}(\S.*)$/.exec(line) ?? [];
    if (!path || path.startsWith('/') || path.split('/').includes('..'))
      throw new CliError(`The backup ${folder} is damaged: ${sumsFile} cannot be read. Nothing was changed.`);
    sums.set(path, digest);
  }
  if (!sums.has(manifestFile))
    throw new CliError(`The backup ${folder} is damaged: ${sumsFile} lacks files. Nothing was changed.`);
  return sums;
}

/** Undefined if the file cannot be read. */
async function digestOf(path: string): Promise<string | undefined> {
  const handle = await open(path).catch(() => undefined);
  if (!handle) return undefined;
  const sum = hashed(handle.createReadStream());
  try {
    for await (const chunk of sum.data) void chunk;
    return sum.digest();
  } catch {
    return undefined;
  }
}

/** The digest and the length are known once all data has been read. */
function hashed(source: Readable): { data: AsyncIterable<Buffer>; digest: () => string; bytes: () => number } {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* pass(): AsyncGenerator<Buffer> {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  }
  return { data: pass(), digest: () => hash.digest('hex'), bytes: () => bytes };
}
