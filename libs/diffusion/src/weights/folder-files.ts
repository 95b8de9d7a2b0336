import { closeSync, openSync, readSync, type Stats } from 'node:fs';
import { opendir, readFile, realpath, stat } from 'node:fs/promises';
import { type Cure, cures, ModelFolderError } from '../errors';
import { join, sep } from 'node:path';

/**
 * Codes with which the operating system says that a file cannot be read now: too many are open, or the
 * disk or the network fails.
 */
const passing = new Set(
  'EAGAIN EBUSY EINTR EIO EMFILE ENFILE ENOBUFS ENODEV ENOMEM ENXIO EREMOTEIO ESTALE ETIMEDOUT'.split(' '),
);

/** Throws an error again if it says nothing about a file but that it cannot be read now. */
export function rethrowPassing(error: unknown): void {
  if (passing.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

/** Whether something is a pipe, a socket or a device. */
export const isSpecial = (found: Stats): boolean => !found.isFile() && !found.isDirectory();

/** The end of a sentence about such a thing in place of a file. */
export const isNoFile = 'is a pipe, a socket or a device, and no file';

/**
 * Status of a path of a model, links followed; undefined if nothing can be found there. To be called before the
 * path is opened: opening a pipe waits for a writer that may never come.
 * @throws ModelFolderError if it is a pipe, a socket or a device
 */
export async function statFile(path: string): Promise<Stats | undefined> {
  const found = (await stat(path).catch(rethrowPassing)) ?? undefined;
  if (found && isSpecial(found)) throw new ModelFolderError(path, isNoFile, cures.installAgain);
  return found;
}

const beginning = 'version https://git-lfs.github.com/spec/';

/** The end of a sentence about a file that a clone without Git LFS has in place of a large one. */
export const isPointer = 'is only a pointer of Git LFS';

const isPointerText = (text: string): boolean => text.startsWith(beginning);

/** Whether a file that can be read is such a pointer. */
export function isPointerFile(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(beginning.length);
    return isPointerText(head.toString('utf8', 0, readSync(file, head)));
  } finally {
    closeSync(file);
  }
}

/** The content of a model's JSON file: an object with unchecked values. */
export type JsonObject = Record<string, unknown>;

/** @throws ModelFolderError if the file is missing or unreadable */
export async function readTextFile(file: string): Promise<string> {
  const text = await readOptionalFile(file);
  if (text === undefined) throw new ModelFolderError(file, 'is missing', cures.installAgain);
  return text;
}

interface OptionalFile {
  optional: true;
  /** The cure if it holds no JSON object. */
  cure?: Cure;
}

/**
 * Reads a JSON object from a model folder. Returns `undefined` if an optional file does not exist.
 * @throws ModelFolderError if the file is missing, unreadable or not a JSON object
 */
export async function readJsonFile(file: string): Promise<JsonObject>;
export async function readJsonFile(file: string, options: OptionalFile): Promise<JsonObject | undefined>;
export async function readJsonFile(file: string, options?: OptionalFile): Promise<JsonObject | undefined> {
  const text = options?.optional ? await readOptionalFile(file) : await readTextFile(file);
  return text === undefined ? undefined : parseJsonObject(file, text, options?.cure);
}

/**
 * The JSON object in the text of a file of a model.
 * @param file for messages
 * @throws ModelFolderError if it is none
 */
export function parseJsonObject(file: string, text: string, cure: Cure = cures.correct): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (isPointerText(text)) throw new ModelFolderError(file, isPointer, cures.getFile);
    // The message quotes the text, with its line breaks.
    const reason = (error as Error).message.replace(/\s+/g, ' ');
    throw new ModelFolderError(file, `is not valid JSON (${reason})`, cure);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new ModelFolderError(file, 'is not a JSON object', cure);
  return value as JsonObject;
}

/**
 * A tokenizer's JSON has some four megabytes, that of Qwen3 eleven; what is far longer would keep everything else
 * waiting.
 */
const largestText = 16 * 2 ** 20;

/** @throws ModelFolderError if the file is there and cannot be read */
export async function readOptionalFile(file: string): Promise<string | undefined> {
  const found = await statFile(file);
  if (found && found.size > largestText)
    throw new ModelFolderError(file, `is longer than ${largestText / 2 ** 20} MiB`, cures.correct);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    rethrowPassing(error);
    throw new ModelFolderError(file, `cannot be read (${code})`, cures.allowReading);
  }
}

interface FolderEntry {
  /** Relative, with forward slashes. */
  path: string;
  /** Its status, links followed; undefined for a link that leads nowhere. */
  found: Stats | undefined;
}

/** Far more than any model has. */
const mostEntries = 10_000;

/**
 * Everything below a folder, also behind links, level by level. A link to a folder that contains it is told, but not
 * followed: two of them would double what is found at each level.
 * @throws ModelFolderError if there is more than a model can have, which links side by side bring about too
 */
export async function entriesBelow(folder: string, most = mostEntries): Promise<FolderEntry[]> {
  const entries: FolderEntry[] = [];
  const waiting: { below: string; above: string[] }[] = [{ below: '', above: [] }];
  for (const { below, above } of waiting) {
    const real = await realpath(join(folder, below));
    if (above.some((other) => isWithin(other, real))) continue;
    const names: string[] = [];
    for await (const { name } of await opendir(join(folder, below))) {
      names.push(name);
      if (entries.length + names.length > most)
        throw new ModelFolderError(folder, `holds more than ${most} files and folders`, cures.removeOthers);
    }
    const found = await Promise.all(names.sort().map((name) => entryAt(folder, below ? `${below}/${name}` : name)));
    for (const entry of found) {
      entries.push(entry);
      if (entry.found?.isDirectory()) waiting.push({ below: entry.path, above: [...above, real] });
    }
  }
  return entries;
}

async function entryAt(folder: string, path: string): Promise<FolderEntry> {
  return { path, found: await stat(join(folder, path)).catch(() => undefined) };
}

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
