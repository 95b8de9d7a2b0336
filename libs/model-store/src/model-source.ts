import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isNoFile } from '@app/diffusion/files';
import type { HubSource } from './hub/hub-download';
import { problemOfFile } from './select-files';
import { ModelStoreError } from './model-store-error';

/** The file of a part of a model. */
export type PartOrigin = FileOrigin | ({ kind: 'hub' } & HubSource);

/** The source of a model to add. */
export type ModelOrigin = { kind: 'folder'; folder: string } | FileOrigin | ({ kind: 'hub' } & HubSource);

/** A file that is here. */
interface FileOrigin {
  kind: 'file';
  file: string;
}

const name = '[A-Za-z0-9][\\w.-]{0,95}';
const repositoryPattern = new RegExp(`^(${name}/${name})(?:/(.+\\.(?:safetensors|gguf)))?$`);
const revisionPattern = /^[A-Za-z0-9][\w./+-]{0,199}$/;

/**
 * Tells a file or a folder from a repository: a path that exists or looks like one is here; `owner/name`, optionally
 * with a checkpoint's path behind it and with `@revision`, and a web address of either are on the hub.
 * @param from where a relative path begins
 * @throws ModelStoreError `InvalidSource` naming what is accepted.
 */
export async function parseModelOrigin(text: string, revision?: string, from = ''): Promise<ModelOrigin> {
  const path = resolve(from, text);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return { kind: 'folder', folder: path };
  if (found) return { kind: 'file', file: await checkpointAt(path, from) };
  const { place, named } = splitRevision(text);
  const [, repository, file] = repositoryPattern.exec(place) ?? [];
  const isPath = /^[.~/\\]|^[a-z]:[\\/]/i.test(text) || (!file && /\.(safetensors|ckpt|gguf|onnx)$/i.test(place));
  if (isPath || !repository || place.includes('..'))
    throw new ModelStoreError(
      'InvalidSource',
      `"${text}" is neither a file, a folder nor a repository of the hub such as owner/name or owner/name@revision, and there is no ${path}.`,
    );
  if (named !== undefined && revision !== undefined && named !== revision)
    throw new ModelStoreError('InvalidSource', `Two revisions are given: ${named} and ${revision}.`);
  const wanted = named ?? revision ?? 'main';
  if (!revisionPattern.test(wanted) || wanted.includes('..'))
    throw new ModelStoreError('InvalidSource', `"${wanted}" is no revision: give a branch, a tag or a commit.`);
  return {
    ...{ kind: 'hub', repository, revision: wanted },
    ...(file && { file }),
    ...(text === repository && { missingFolder: path }),
  };
}

/**
 * The file of a part: a path, or `owner/name/path/of/file` on the hub.
 * @throws ModelStoreError `InvalidSource`
 */
export async function parsePartOrigin(text: string, from = ''): Promise<PartOrigin> {
  const isHere = await stat(resolve(from, text)).catch(() => undefined);
  const origin = isHere ? undefined : await parseModelOrigin(text, undefined, from).catch(() => undefined);
  return origin?.kind === 'hub' && origin.file ? origin : { kind: 'file', file: await checkpointAt(text, from) };
}

/**
 * The absolute path of a file with weights that may be read.
 * @throws ModelStoreError `InvalidSource`
 */
export async function checkpointAt(text: string, from = ''): Promise<string> {
  const file = resolve(from, text);
  const found = await stat(file).catch(() => undefined);
  if (!found) throw new ModelStoreError('InvalidSource', `There is no ${file}.`);
  if (!found.isFile() && !found.isDirectory()) throw new ModelStoreError('InvalidSource', `${file} ${isNoFile}.`);
  const problem = problemOfFile(file);
  if (problem !== undefined) throw new ModelStoreError('InvalidSource', problem);
  return file;
}

/** `owner/name`, or that with the path of a file, and the revision that is given with it. */
function splitRevision(text: string): { place: string; named: string | undefined } {
  const page = /^https?:\/\/[^/]+\/([^/]+\/[^/@]+?)(?:\/tree\/(.+?))?\/?$/.exec(text);
  if (page) return { place: page[1], named: page[2] && decodeURIComponent(page[2]) };
  const file = /^https?:\/\/[^/]+\/([^/]+\/[^/]+)\/(?:blob|resolve)\/([^/]+)\/([^?]+)/.exec(text);
  if (file) return { place: `${file[1]}/${decodeURIComponent(file[3])}`, named: decodeURIComponent(file[2]) };
  const at = text.indexOf('@');
  return at < 0 ? { place: text, named: undefined } : { place: text.slice(0, at), named: text.slice(at + 1) };
}
