import type { IncomingMessage } from 'node:http';
import { isSafePath } from '../select-files';
import { ModelStoreError } from '../model-store-error';
import { bodyOf } from './http-get';

/** A file of a repository, with its expected content. */
export interface HubFile {
  path: string;
  size: number;
  /** sha256 of the content, for a file in large-file storage. */
  sha256?: string;
  /** git's object id, for any other file. */
  blobId?: string;
}

/** A revision of a repository: its current commit and its files. */
export interface HubListing {
  commit: string;
  files: HubFile[];
  /** As the repository's page states it. */
  licence?: string;
}

const maxListingBytes = 32 * 2 ** 20;

interface Sibling {
  rfilename?: unknown;
  size?: unknown;
  blobId?: unknown;
  lfs?: { sha256?: unknown; size?: unknown };
}

interface Listing {
  sha?: unknown;
  cardData?: { license?: unknown; license_name?: unknown } | null;
  siblings?: (Sibling | null)[];
}

/**
 * @throws ModelStoreError `HubRefused` when the response is no listing, lacks a checksum or names a
 * path outside the model.
 */
export function parseListing(text: string, repository: string): HubListing {
  const wrong = (reason: string): ModelStoreError =>
    new ModelStoreError('HubRefused', `The listing of ${repository} ${reason}.`);
  let listing: Listing;
  try {
    listing = JSON.parse(text) as Listing;
  } catch {
    throw wrong('is not JSON');
  }
  const { sha, siblings, cardData } = listing ?? {};
  if (typeof sha !== 'string' || !/^[0-9a-f]{40,64}$/.test(sha) || !Array.isArray(siblings))
    throw wrong('names no commit or no files');
  const hex = (value: unknown, digits: number): value is string =>
    typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value);
  const files = siblings.map((sibling): HubFile => {
    const { rfilename: path, size: plainSize, blobId, lfs } = sibling ?? {};
    if (typeof path !== 'string' || !isSafePath(path))
      throw wrong(`names a file that would lie outside the model: ${JSON.stringify(path)}`);
    const size = lfs?.size ?? plainSize;
    if (typeof size !== 'number' || !Number.isInteger(size) || size < 0) throw wrong(`gives no size for ${path}`);
    if (hex(lfs?.sha256, 64)) return { path, size, sha256: lfs.sha256 };
    if (hex(blobId, 40)) return { path, size, blobId };
    throw wrong(`gives no checksum for ${path}`);
  });
  // "other" stands before the name of a licence that the hub does not know.
  const licence = [cardData?.license_name, cardData?.license].find((name) => typeof name === 'string');
  return { commit: sha, files, ...(licence && /^[\w .+-]{1,80}$/.test(licence) && { licence }) };
}

/** The body of a response as text. @throws TransientError when the connection breaks. */
export async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of bodyOf(response)) {
    size += chunk.length;
    if (size > maxListingBytes) throw new ModelStoreError('HubRefused', 'The listing of the repository is too long.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
