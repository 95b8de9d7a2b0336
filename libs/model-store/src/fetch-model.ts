import { mkdir, readdir, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { defaultsFile, type TargetPrecision, vaeFile } from '@app/diffusion/files';
import { type FilesBeside, type GivenParts, readGivenParts } from './assemble-model';
import { HubClient, type HubOptions } from './hub/hub-client';
import { downloadModel, type HubSource } from './hub/hub-download';
import { type AddedKind, checkpointFile } from './select-files';
import { checkSource, findFilesIn, listFolder } from './model-layout';
import type { ModelOrigin, PartOrigin } from './model-source';
import { explainDiskErrors, withFaults } from './model-store-error';
import { type PlacedFiles, placeFiles, type Watched } from './place-files';

interface FetchOptions extends Watched {
  hub: HubOptions;
  kind: AddedKind;
  precision: TargetPrecision | undefined;
  signal: AbortSignal;
}

/** Files that are given beside a source: of its autoencoder, and of its text encoder. */
export interface OriginsBeside {
  text_encoder?: PartOrigin | undefined;
  vae?: PartOrigin | undefined;
}

export interface FetchedModel extends PlacedFiles {
  origin: string;
  licence?: string;
  /** What there is of a model that comes as files of its parts: they are in the folder, or where they were. */
  given?: GivenParts;
}

/**
 * Puts the files of a model into the folder `partial`. A download that breaks off leaves that as it is.
 * @throws ModelStoreError
 */
export async function fetchModel(
  source: ModelOrigin,
  beside: OriginsBeside,
  partial: string,
  options: FetchOptions,
): Promise<FetchedModel> {
  try {
    return await fetchFiles(source, beside, partial, options);
  } catch (error) {
    const isDownloaded = [source, beside.text_encoder, beside.vae].some((one) => one?.kind === 'hub');
    if (!isDownloaded) await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

async function fetchFiles(
  source: ModelOrigin,
  beside: OriginsBeside,
  partial: string,
  { hub, kind, precision, ...watched }: FetchOptions,
): Promise<FetchedModel> {
  const client = new HubClient(hub);
  const fetched = new Map<string, string>();
  const download = async (origin: HubSource) => {
    const got = await downloadModel(client, origin, partial, kind, { ...watched, precision });
    for (const [path, digest] of got.files) fetched.set(path, digest);
    return got;
  };
  await explainDiskErrors(mkdir(partial, { recursive: true }));
  await rm(join(partial, defaultsFile), { force: true });
  if (beside.vae?.kind !== 'hub') await rm(join(partial, vaeFile), { force: true });
  let [origin, licence] = [source.kind === 'file' ? source.file : source.kind === 'folder' ? source.folder : '', ''];
  let main = source.kind === 'file' ? source.file : undefined;
  if (source.kind === 'hub') {
    const { repository, file } = source;
    const to = `model${extname(file ?? checkpointFile)}`;
    const got = await download({ ...source, to });
    [origin, licence] = [`${repository}${file ? `/${file}` : ''}@${got.commit}`, got.licence ?? ''];
    main = file && join(partial, to);
  }
  const here: FilesBeside = {};
  for (const [name, from] of Object.entries(beside) as [keyof FilesBeside, PartOrigin | undefined][]) {
    const to = `${name}${extname(from?.file ?? '')}`;
    if (from?.kind === 'hub') await download({ ...from, to });
    if (from) here[name] = from.kind === 'hub' ? join(partial, to) : from.file;
  }
  const facts = { origin, ...(licence && { licence }) };
  const given = main === undefined ? undefined : await readGivenParts(main, here);
  if (given) return { ...facts, files: fetched, isLinked: false, given };
  const files = new Map(source.kind === 'hub' ? [] : await filesOf(source, kind));
  if (here.vae !== undefined) files.set(vaeFile, here.vae);
  if (source.kind !== 'hub') await checkSource(files, kind);
  await removeOthers(partial, [...fetched.keys()]);
  const placed = await placeFiles(new Map([...files].filter(([to]) => !fetched.has(to))), partial, watched);
  return {
    ...facts,
    files: new Map([...fetched, ...placed.files]),
    isLinked: placed.isLinked && source.kind !== 'hub',
  };
}

type LocalSource = Exclude<ModelOrigin, { kind: 'hub' }>;

/** The files of a model that is here: absolute path of each, by its path in the model. */
async function filesOf(source: LocalSource, kind: AddedKind): Promise<Map<string, string>> {
  if (source.kind === 'file') return new Map([[checkpointFile, source.file]]);
  const found = await findFilesIn(source.folder, kind);
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
export function refusalOf(source: ModelOrigin, what: string, vae: string | undefined, faults: string): string {
  const named = (file: string, path: string, text: string): string =>
    text.replaceAll(new RegExp(`^${file.replaceAll('.', '\\.')}(?= )`, 'gm'), path);
  const ofVae = named(vaeFile, vae ?? vaeFile, faults);
  if (source.kind === 'file') return named(checkpointFile, source.file, ofVae);
  const from = source.kind === 'folder' ? source.folder : `${source.repository}@${source.revision}`;
  return withFaults(`${from} is no ${what}:`, ofVae);
}
