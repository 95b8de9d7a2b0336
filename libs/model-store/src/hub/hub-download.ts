import { ProgressMeter } from '../model-progress';
import type { HubClient } from './hub-client';
import type { HubFile, HubListing } from './hub-listing';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describesControlNet, readModelIndex, type TargetPrecision } from '@app/diffusion/files';
import { checkDiskSpace, explainRefusal, ModelStoreError } from '../model-store-error';
import { type AddedKind, checkpointFile, selectModelFiles } from '../select-files';
import { controlNetRefusal } from '../model-layout';
import { bytesOfConversion } from '../convert-model';
import type { Watched } from '../place-files';
import { FileDownload, incompletePath } from './file-download';

/** A repository of the hub at a revision: a branch, a tag or a commit. */
export interface HubSource {
  repository: string;
  revision: string;
  /** The one checkpoint of the repository that is meant. */
  file?: string;
  /** What that is called in the model. */
  to?: string;
  /** The folder that does not exist, where the source may have been meant as one. */
  missingFolder?: string;
}

/**
 * Downloads the files of a model into `folder`, several at a time, and resumes what an earlier run left there.
 * @param precision that its weights will be written in, which takes room beside them
 * @returns the commit of the revision, its licence, and the sha256 of each file by its path in the model
 * @throws ModelStoreError; the downloaded bytes stay in the folder
 */
export async function downloadModel(
  client: HubClient,
  source: HubSource,
  folder: string,
  kind: AddedKind,
  { onProgress, signal, precision }: Watched & { signal: AbortSignal; precision?: TargetPrecision | undefined },
): Promise<{ commit: string; licence?: string; files: Map<string, string> }> {
  const { repository, file: checkpoint } = source;
  const listing = await listingOf(client, source, signal);
  const byPath = new Map(listing.files.map((file) => [file.path, file]));
  if (checkpoint !== undefined && !byPath.has(checkpoint))
    throw new ModelStoreError('HubRefused', `${repository}@${source.revision} has no ${checkpoint}.`);
  const wanted =
    checkpoint === undefined
      ? selectModelFiles([...byPath.keys()], 'smallFirst', kind)
      : [{ from: checkpoint, to: source.to ?? checkpointFile }];
  const chosen = wanted.map(({ from, to }) => ({ file: byPath.get(from)!, to }));
  // The largest first: then the connections share the small files at the end instead of waiting for one big one.
  chosen.sort((a, b) => b.file.size - a.file.size);

  const totalBytes = chosen.reduce((sum, { file }) => sum + file.size, 0);
  const missingBytes = totalBytes - (await presentBytes(folder, chosen));
  const sizes = chosen.map(({ file, to }) => ({ path: to, size: file.size }));
  // Once all is there, the conversion itself knows better what it needs.
  await checkDiskSpace(folder, missingBytes && missingBytes + bytesOfConversion(sizes, precision));
  const meter = new ProgressMeter('download', totalBytes, chosen.length, onProgress);
  const files = new Map<string, string>();
  const download = async ({ file, to }: (typeof chosen)[number], stop: AbortSignal): Promise<void> => {
    const onBytes = (bytes: number, found: boolean): void => meter.set(to, bytes, found);
    const one = new FileDownload(client, repository, listing.commit, file, join(folder, to), onBytes);
    files.set(to, await one.run(stop));
    meter.finish(to);
  };
  // It says what the repository is, before gigabytes of something else are fetched.
  const isIndex = ({ to }: (typeof chosen)[number]): boolean => to === 'model_index.json' || to === 'config.json';
  for (const index of chosen.filter(isIndex)) await download(index, signal);
  await explainRefusal(folder, () => readModelIndex(folder));
  if (kind !== 'control' && (await describesControlNet(folder))) throw controlNetRefusal('config.json');
  const rest = chosen.filter((one) => !isIndex(one));
  await forEachConcurrently(rest, client.options.concurrency, signal, download);
  const { commit, licence } = listing;
  return { commit, files, ...(licence && { licence }) };
}

async function listingOf(client: HubClient, source: HubSource, signal: AbortSignal): Promise<HubListing> {
  const { repository, revision, missingFolder } = source;
  try {
    return await client.list(repository, revision, signal);
  } catch (error) {
    if (!(error instanceof ModelStoreError) || error.code !== 'HubUnreachable' || !missingFolder) throw error;
    const message = error.message.replace(/\.$/, `, and there is no folder ${missingFolder}.`);
    throw new ModelStoreError('HubUnreachable', message, { cause: error });
  }
}

async function presentBytes(folder: string, chosen: readonly { file: HubFile; to: string }[]): Promise<number> {
  let sum = 0;
  for (const { file, to } of chosen)
    for (const path of [join(folder, to), incompletePath(join(folder, to), file)]) {
      const size = await stat(path).then(
        (found) => found.size,
        () => 0,
      );
      sum += Math.min(size, file.size);
    }
  return sum;
}

/** Processes `limit` items at a time. The first failure stops the others, and is thrown when all of them have ended. */
async function forEachConcurrently<T>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal,
  work: (item: T, stop: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const queue = items.values();
  const workThrough = async (): Promise<void> => {
    try {
      for (const item of queue) {
        stop.throwIfAborted();
        await work(item, stop);
      }
    } catch (error) {
      failed.abort(error);
    }
  };
  await Promise.all(Array.from({ length: limit }, workThrough));
  stop.throwIfAborted();
}
