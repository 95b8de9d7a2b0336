import { readFile } from 'node:fs/promises';
import type { Cure } from './cures';
import { cures } from './cures';
import { ModelFolderError } from './errors';
import { rethrowPassing } from './graph-fault';
import { isPointer, isPointerText } from './lfs-pointer';
import { statFile } from './regular-file';

/** The content of a model's JSON file: an object with unchecked values. */
export type JsonObject = Record<string, unknown>;

/** @throws ModelFolderError if the file is missing or unreadable */
export async function readTextFile(file: string): Promise<string> {
  const text = await readOptionalFile(file);
  if (text === undefined) throw new ModelFolderError(file, 'is missing', cures.installAgain);
  return text;
}

/** A file that a folder need not have. */
interface OptionalFile {
  optional: true;
  /** What to do if it holds no JSON object. */
  cure?: Cure;
}

/**
 * Reads a JSON object from a model folder. Returns `undefined` if an optional file does not exist.
 * @throws ModelFolderError if the file is missing, unreadable or not a JSON object
 */
export async function readJsonFile(file: string): Promise<JsonObject>;
export async function readJsonFile(file: string, options: OptionalFile): Promise<JsonObject | undefined>;
export async function readJsonFile(file: string, options?: OptionalFile): Promise<JsonObject | undefined> {
  const { cure = cures.correct } = options ?? {};
  const text = options?.optional ? await readOptionalFile(file) : await readTextFile(file);
  if (text === undefined) return undefined;
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

/** @throws ModelFolderError if the file is there and cannot be read */
export async function readOptionalFile(file: string): Promise<string | undefined> {
  await statFile(file);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    rethrowPassing(error);
    throw new ModelFolderError(file, `cannot be read (${code})`, cures.allowReading);
  }
}
