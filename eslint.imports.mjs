import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Which of our own libraries a folder may import. Everything else of ours is refused, and apps never import apps. */
export const allowed = {
  'libs/domain': [],
  'libs/diffusion': [],
  'libs/process': [],
  'libs/config': ['process'],
  'libs/observability': ['config'],
  'libs/storage': ['config'],
  'libs/database': ['domain', 'process'],
  'libs/api-keys': ['domain'],
  'libs/queue': ['config', 'database', 'domain', 'process'],
  'libs/image-tasks': ['database', 'domain', 'queue'],
  'libs/model-store': ['diffusion', 'process'],
  'libs/foundation': ['config', 'database', 'image-tasks', 'observability', 'process', 'queue', 'storage'],
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
  work: [],
  infrastructure: [],
  'open-requests': ['infrastructure', 'work'],
  'storage-use': ['open-requests'],
  auth: ['infrastructure', 'storage-use'],
  http: ['auth', 'docs', 'infrastructure', 'open-requests', 'work'],
  idempotency: ['http', 'open-requests', 'work'],
  observability: ['auth', 'http', 'infrastructure', 'storage-use'],
  pictures: ['work'],
  thumbnails: ['infrastructure', 'pictures', 'work'],
  images: ['auth', 'http', 'work'],
  models: ['docs', 'work'],
  page: ['auth', 'http'],
  usage: ['auth', 'docs', 'http'],
  retention: ['idempotency', 'storage-use', 'thumbnails'],
  sandbox: ['infrastructure', 'pictures'],
  acceptance: ['auth', 'storage-use'],
  collections: ['auth', 'docs', 'http', 'images', 'infrastructure', 'storage-use', 'thumbnails', 'work'],
  styles: ['auth', 'collections', 'docs', 'http', 'images', 'infrastructure', 'storage-use', 'thumbnails'],
  'text-to-image': ['acceptance', 'auth', 'docs', 'http', 'images', 'infrastructure', 'models', 'storage-use'],
  finetunes: ['auth', 'docs', 'http', 'infrastructure', 'models', 'storage-use', 'text-to-image', 'thumbnails', 'work'],
  'finetune-prompts': [
    ...['acceptance', 'auth', 'docs', 'finetunes', 'http', 'images', 'infrastructure', 'models', 'storage-use'],
    ...['styles', 'thumbnails', 'work'],
  ],
  webhooks: ['auth', 'docs', 'finetune-prompts', 'infrastructure', 'text-to-image', 'work'],
  events: ['auth', 'docs', 'finetune-prompts', 'http', 'infrastructure', 'open-requests', 'text-to-image'],
  keys: ['auth', 'docs', 'http', 'infrastructure', 'usage'],
  operator: ['auth', 'docs', 'http', 'infrastructure', 'models', 'storage-use', 'webhooks'],
  openai: ['auth', 'docs', 'http', 'infrastructure', 'text-to-image', 'work'],
  waiting: ['http', 'idempotency', 'infrastructure', 'open-requests', 'text-to-image'],
};
export const apiFolders = foldersOf('apps/api/src');
assertOneWay('apps/api/src', apiFolders, allowedInApi);

/** Which folders of the worker a folder of it may import. */
export const allowedInWorker = {
  engine: [],
  metrics: ['engine'],
  pictures: ['engine'],
  drawing: ['engine', 'metrics', 'pictures'],
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
