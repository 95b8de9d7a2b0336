import {
  allowedInApi,
  allowedInEngine,
  allowedInWorker,
  apiFolders,
  engineFolders,
  workerFolders,
} from './eslint.imports.mjs';

export const deep = {
  group: ['@app/*/*', '!@app/diffusion/files', '!@app/domain/http', '**/libs/*'],
  message: 'Import a library through one of its entries: @app/<name>.',
};
const ofApp = (app) => [
  deep,
  {
    regex: `^(\\.\\./)+(?:apps/)?(?!${app}/)(api|inference|launcher|cli|web)/src`,
    message: 'An app never imports another app.',
  },
];
export const apps = ['api', 'inference', 'launcher', 'cli'].map((app) => ({
  files: [`apps/${app}/**/*.ts`],
  rules: { 'no-restricted-imports': ['error', { patterns: ofApp(app) }] },
}));
/** The folders of `path` import each other as `rules` say, and never the files beside them that `putTogether` names. */
const inside = ({ path, folders, rules, putTogether, also }) =>
  Object.entries(rules).map(([folder, names]) => ({
    files: [`${path}/${folder}/**/*.ts`],
    ignores: ['**/*.spec.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            ...also,
            {
              regex: `^(\\.\\./)+(${folders.filter((name) => name !== folder && !names.includes(name)).join('|')})/`,
              message: `${path}/${folder} may import only: ${names.join(', ') || 'none of the other folders'}.`,
            },
            {
              regex: `^(\\.\\./)+(${putTogether.join('|')})$`,
              message: 'What puts everything together is imported by nothing.',
            },
          ],
        },
      ],
    },
  }));
const insideApi = inside({
  path: 'apps/api/src',
  folders: apiFolders,
  rules: allowedInApi,
  putTogether: ['api\\.module', 'create-api', 'main', 'serialize-document', 'thread-pool', 'write-document'],
  also: ofApp('api'),
});
const ofWorker = ['create-inference', 'inference\\.module', 'inference\\.providers', 'main'];
const insideWorker = inside({
  path: 'apps/inference/src',
  folders: workerFolders,
  rules: allowedInWorker,
  putTogether: ofWorker,
  also: ofApp('inference'),
});
/** Each rule takes the place of that of the worker's folder `engine`, and so repeats it. */
const insideEngine = inside({
  path: 'apps/inference/src/engine',
  folders: engineFolders,
  rules: allowedInEngine,
  putTogether: [...ofWorker, 'engine', 'engines', 'engine-places', 'engine-state', 'engine-thread', 'silence-watch'],
  also: [
    ...ofApp('inference'),
    {
      regex: `^(\\.\\./)+(${workerFolders.filter((name) => name !== 'engine').join('|')})/`,
      message: 'The engine imports no other folder of the worker.',
    },
  ],
});
export const insideApps = [...insideApi, ...insideWorker, ...insideEngine];
