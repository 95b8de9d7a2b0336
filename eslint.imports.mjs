import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Which of our own libraries a folder may import. Everything else of ours is refused, and apps never import apps. */
export const allowed = {
  'libs/domain': [],
  'libs/diffusion': [],
  'libs/observability': [],
  'libs/process': ['observability'],
  'libs/config': ['observability', 'process'],
  'libs/storage': ['config'],
  'libs/database': ['config', 'domain', 'process'],
  'libs/queue': ['config', 'database', 'domain', 'observability', 'process'],
  'libs/tasks': ['config', 'database', 'domain', 'observability', 'process', 'queue'],
  'libs/model-store': ['diffusion', 'process'],
};
export const libs = foldersOf('libs');
assertOneWay(
  'libs',
  libs,
  Object.fromEntries(Object.entries(allowed).map(([folder, names]) => [folder.slice('libs/'.length), names])),
);

/**
 * Which folders of the api a folder of it may import. The files beside the folders put everything
 * together and may import all.
 */
export const allowedInApi = {
  docs: [],
  defence: [],
  http: ['defence', 'docs'],
  files: ['defence', 'http'],
  models: ['defence', 'docs', 'http'],
  generations: ['defence', 'docs', 'files', 'http', 'models'],
  collections: ['defence', 'docs', 'files', 'http'],
  finetunes: ['collections', 'defence', 'docs', 'files', 'generations', 'http', 'models'],
  webhooks: ['docs', 'finetunes', 'generations', 'http'],
  events: ['defence', 'docs', 'finetunes', 'generations', 'http'],
  admin: ['docs', 'files', 'http', 'models', 'webhooks'],
};
export const apiFolders = foldersOf('apps/api/src');
assertOneWay('apps/api/src', apiFolders, allowedInApi);

/** Which folders of the worker a folder of it may import. */
export const allowedInWorker = {
  engine: [],
  metrics: ['engine'],
  pictures: ['engine'],
  drawing: ['engine', 'metrics', 'pictures'],
  sandbox: ['drawing', 'engine', 'pictures'],
  health: ['drawing', 'engine', 'metrics'],
  sweeper: ['drawing', 'engine', 'health'],
};
export const workerFolders = foldersOf('apps/inference/src');
assertOneWay('apps/inference/src', workerFolders, allowedInWorker);

/**
 * Which folders of the engine's thread a folder of it may import. All import the files beside the folders that say
 * what lanes, messages, errors and failures are.
 */
export const allowedInEngine = {
  device: [],
  time: [],
  threads: ['time'],
  memory: [],
  models: ['memory', 'threads'],
  calls: ['memory', 'models', 'threads', 'time'],
  admission: ['calls', 'memory', 'models', 'time'],
  upscaling: ['calls', 'memory', 'models', 'time'],
  loop: ['admission', 'calls', 'models', 'threads', 'time', 'upscaling'],
};
export const engineFolders = foldersOf('apps/inference/src/engine');
assertOneWay('apps/inference/src/engine', engineFolders, allowedInEngine);

function foldersOf(path) {
  const entries = readdirSync(join(import.meta.dirname, path), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Each folder has a rule, and imports only folders whose rules stand before its own: so there is no way back. */
function assertOneWay(path, folders, rules) {
  const names = Object.keys(rules);
  for (const name of folders)
    if (!names.includes(name)) throw new Error(`${path}/${name} has no rule of what it may import.`);
  for (const [index, name] of names.entries()) {
    if (!folders.includes(name)) throw new Error(`There is no ${path}/${name}, and yet it has a rule.`);
    const later = rules[name].find((other) => !names.slice(0, index).includes(other));
    if (later) throw new Error(`The rule of ${path}/${name} names ${later}, which must stand before it.`);
  }
}
