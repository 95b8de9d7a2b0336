import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultsFile, vaeFile } from '@app/diffusion/files';
import type { WantedPrecision } from './convert-model';
import { HubClient, type HubOptions } from './hub/hub-client';
import { downloadModel } from './hub/hub-download';
import { checkpointFile } from './select-files';
import { checkSource, findFilesIn, listFolder } from './model-layout';
import type { ModelOrigin } from './model-source';
import { explainDiskErrors, withFaults } from './model-store-error';
import { type PlacedFiles, placeFiles, type Watched } from './place-files';

interface FetchOptions extends Watched {
  hub: HubOptions;
  isControl: boolean;
  precision: WantedPrecision | undefined;
  signal: AbortSignal;
}

/**
 * Puts the files of a model into the folder `part`. A download that breaks off leaves that as it is.
 * @param vae path of a file with another autoencoder
 * @throws ModelStoreError
 */
export async function fetchModel(
  source: ModelOrigin,
  vae: string | undefined,
  part: string,
  { hub, isControl, precision, ...watched }: FetchOptions,
): Promise<PlacedFiles & { origin: string; licence?: string }> {
  const beside = new Map(vae === undefined ? [] : [[vaeFile, vae]]);
  if (source.kind === 'hub') {
    await explainDiskErrors(mkdir(part, { recursive: true }));
    for (const path of [vaeFile, defaultsFile]) await rm(join(part, path), { force: true });
    const client = new HubClient(hub);
    const { files, commit, licence } = await downloadModel(client, source, part, isControl, { ...watched, precision });
    await removeOthers(part, [...files.keys()]);
    const placed = await placeFiles(beside, part, watched);
    const { repository, file } = source;
    const origin = `${repository}${file ? `/${file}` : ''}@${commit}`;
    const all = new Map([...files, ...placed.files]);
    return { origin, files: all, isLinked: false, ...(licence && { licence }) };
  }
  const files = new Map([...(await filesOf(source)), ...beside]);
  await checkSource(files, isControl);
  await rm(part, { recursive: true, force: true });
  await explainDiskErrors(mkdir(part));
  try {
    return { origin: pathOf(source), ...(await placeFiles(files, part, watched)) };
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
}

type LocalSource = Exclude<ModelOrigin, { kind: 'hub' }>;

const pathOf = (source: LocalSource): string => (source.kind === 'file' ? source.file : source.folder);

/** The files of a model that is here: absolute path of each, by its path in the model. */
async function filesOf(source: LocalSource): Promise<Map<string, string>> {
  if (source.kind === 'file') return new Map([[checkpointFile, source.file]]);
  const found = await findFilesIn(source.folder);
  return new Map(found.map(({ from, to }) => [to, join(source.folder, from)]));
}

/** Removes what an interrupted download of another source has left. */
async function removeOthers(folder: string, files: readonly string[]): Promise<void> {
  const names = new Set(files.map((path) => path.split('/')[0]));
  for (const name of await readdir(folder))
    if (!names.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  for (const path of await listFolder(folder)) if (!files.includes(path)) await rm(join(folder, path));
}

/** Why a source is no model, with its files called as they are there. */
export function refusalOf(source: ModelOrigin, vae: string | undefined, faults: string): string {
  const named = (file: string, path: string, text: string): string =>
    text.replaceAll(new RegExp(`^${file.replaceAll('.', '\\.')}(?= )`, 'gm'), path);
  const ofVae = named(vaeFile, vae ?? vaeFile, faults);
  if (source.kind === 'file') return named(checkpointFile, source.file, ofVae);
  const from = source.kind === 'folder' ? source.folder : `${source.repository}@${source.revision}`;
  return withFaults(`${from} is no model to draw with:`, ofVae);
}
