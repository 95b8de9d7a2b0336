import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isNoFile } from '@app/diffusion/files';
import type { HubSource } from './hub/hub-download';
import { problemOfFile } from './model-files';
import { ModelStoreError } from './model-store-error';

/** The source of a model to add. */
export type ModelSource = { kind: 'folder'; folder: string } | ({ kind: 'hub' } & HubSource);

const repositoryPattern = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95}$/;
const revisionPattern = /^[A-Za-z0-9][\w./+-]{0,199}$/;

/**
 * Tells a folder from a repository: a path that exists or looks like one is a folder; `owner/name`, optionally with
 * `@revision`, and a repository's web address are on the hub.
 * @param from where a relative path begins
 * @throws ModelStoreError `InvalidSource` naming what is accepted.
 */
export async function parseModelSource(text: string, revision?: string, from = ''): Promise<ModelSource> {
  const folder = resolve(from, text);
  const found = await stat(folder).catch(() => undefined);
  if (found?.isDirectory()) return { kind: 'folder', folder };
  const [repository, named] = splitRevision(text);
  const isPath = /^[.~/\\]|^[a-z]:[\\/]/i.test(text);
  if (found?.isFile()) throw new ModelStoreError('InvalidSource', await problemOfFile(folder));
  if (found) throw new ModelStoreError('InvalidSource', `${folder} ${isNoFile}: name a folder with a model.`);
  if (isPath || !repositoryPattern.test(repository) || repository.includes('..'))
    throw new ModelStoreError(
      'InvalidSource',
      `"${text}" is neither a folder nor a repository of the hub such as owner/name or owner/name@revision, and there is no folder ${folder}.`,
    );
  if (named !== undefined && revision !== undefined && named !== revision)
    throw new ModelStoreError('InvalidSource', `Two revisions are given: ${named} and ${revision}.`);
  const wanted = named ?? revision ?? 'main';
  if (!revisionPattern.test(wanted) || wanted.includes('..'))
    throw new ModelStoreError('InvalidSource', `"${wanted}" is no revision: give a branch, a tag or a commit.`);
  return { kind: 'hub', repository, revision: wanted, ...(text === repository && { missingFolder: folder }) };
}

function splitRevision(text: string): [string, string | undefined] {
  const page = /^https?:\/\/[^/]+\/([^/]+\/[^/@]+?)(?:\/tree\/(.+?))?\/?$/.exec(text);
  if (page) return [page[1], page[2] && decodeURIComponent(page[2])];
  const at = text.indexOf('@');
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
