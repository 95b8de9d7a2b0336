import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import js from '@eslint/js';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';
import { directions as ofDiffusion } from './libs/diffusion/layers.mjs';

/** Which folders beside it a folder may import. */
const directions = {
  'libs/diffusion/src': ofDiffusion,
  libs: {
    domain: [],
    diffusion: [],
    observability: [],
    process: ['observability'],
    config: ['observability', 'process'],
    storage: ['config'],
    database: ['config', 'domain', 'process'],
    queue: ['config', 'database', 'domain', 'observability', 'process'],
    tasks: ['config', 'database', 'domain', 'observability', 'process', 'queue'],
    'model-store': ['diffusion', 'process'],
    credentials: ['process'],
    moderation: ['observability', 'process'],
    remote: ['domain', 'process'],
    pictures: ['config', 'diffusion', 'domain', 'observability', 'process', 'remote', 'storage'],
  },
  'apps/api/src': {
    docs: [],
    defence: [],
    http: ['defence', 'docs'],
    files: ['defence', 'http'],
    models: ['defence', 'docs', 'http'],
    uploads: ['defence', 'docs', 'files', 'http'],
    generations: ['defence', 'docs', 'files', 'http', 'models', 'uploads'],
    collections: ['defence', 'docs', 'files', 'http'],
    finetunes: ['collections', 'defence', 'docs', 'files', 'generations', 'http', 'models'],
    drawings: ['docs', 'files', 'http'],
    verification: ['docs', 'files', 'http'],
    webhooks: ['docs', 'finetunes', 'generations', 'http'],
    events: ['defence', 'docs', 'finetunes', 'generations', 'http'],
    admin: ['docs', 'files', 'http', 'models', 'webhooks'],
    agents: ['defence', 'docs', 'http'],
  },
  'apps/inference/src': {
    device: [],
    engine: ['device'],
    'engine-client': ['device', 'engine'],
    metrics: ['engine'],
    pictures: ['engine', 'engine-client'],
    drawing: ['engine', 'engine-client', 'metrics', 'pictures'],
    training: ['drawing', 'engine', 'engine-client', 'pictures'],
    sandbox: ['drawing', 'engine', 'engine-client', 'pictures', 'training'],
    health: ['drawing', 'engine-client', 'metrics', 'pictures'],
    sweeper: ['drawing', 'health'],
  },
};
/** Files beside the folders that these may import; all others put everything together, and are imported by nothing. */
const besideFolders = { 'apps/inference/src': ['shutdown-deadline.ts'] };
const entries = readdirSync(join(import.meta.dirname, 'libs')).map((lib) => `${lib}/src/index.ts`);
const ofDiffusionAlone = ['files.ts', 'families/sizes.ts'].map((file) => `diffusion/src/${file}`);
const zones = [
  ...Object.entries(directions).flatMap(([path, rules]) => {
    const folders = readdirSync(join(import.meta.dirname, path), { withFileTypes: true }).filter((each) =>
      each.isDirectory(),
    );
    const order = Object.keys(rules);
    for (const { name } of folders)
      if (!order.includes(name)) throw new Error(`${path}/${name} has no rule of what it may import.`);
    return Object.entries(rules).map(([folder, names]) => ({
      target: `./${path}/${folder}`,
      from: `./${path}`,
      except: [
        folder,
        ...(path === 'libs' ? names.map((name) => `${name}/src/index.ts`) : names),
        ...(path === 'libs' && names.includes('diffusion') ? ofDiffusionAlone : []),
        ...(besideFolders[path] ?? []),
      ],
      message: `${path}/${folder} may import only: ${names.join(', ') || 'none of the other folders'}.`,
    }));
  }),
  { target: './libs', from: './apps', message: 'Libraries never import apps.' },
  {
    target: './apps',
    from: './libs',
    except: [...entries, ...ofDiffusionAlone, 'domain/src/http.ts', 'pictures/src/canny-edges.ts'],
    message: 'Import a library through one of its entries: @app/<name>.',
  },
  ...['api', 'inference', 'launcher', 'cli', 'web'].map((app) => ({
    target: `./apps/${app}`,
    from: './apps',
    except: [app],
    message: 'An app never imports another app.',
  })),
  ...['inference', 'launcher', 'cli', 'web'].map((app) => ({
    target: `./apps/${app}`,
    from: './libs/domain/src/http.ts',
    message: 'Only the api describes its requests and answers.',
  })),
];
/** What the worker loads of `libs/domain` and `libs/diffusion` knows neither the framework nor requests. */
const httpOfDomain = [
  'libs/domain/src/http.ts',
  'libs/domain/src/**/*.dto{,.spec}.ts',
  'libs/domain/src/fields/field*.ts',
];
const ofRequests = '^\\.{1,2}/(?:.*\\.dto|http|(?:.*/)?fields/field[\\w-]*|fields[\\w-]*|field-rule)$';
const freeOfFramework = {
  files: ['libs/{diffusion,domain}/**/*.ts'],
  ignores: httpOfDomain,
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          { group: ['@nestjs/*', 'pino'], message: 'These libraries are free of the framework.' },
          { regex: ofRequests, message: 'What the worker loads describes no requests.' },
        ],
      },
    ],
  },
};
/** Files of the api that know of requests and answers. */
const edge = [
  'apps/api/src/*.ts',
  'apps/api/src/{defence,http,docs}/**/*.ts',
  'apps/api/src/**/*.{controller,decorator,guard,interceptor,filter,middleware}.ts',
  'apps/api/src/**/*-{answer,body,query}.ts',
];
const sharp = { name: 'sharp', message: 'Pictures are drawn, decoded and encoded in the worker.' };
const ofHttp = 'Only controllers, decorators, guards, interceptors, filters, middleware and http/ know of Express.';
const requests = [
  {
    files: ['apps/api/src/**/*.ts'],
    ignores: [...edge, '**/*.spec.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: [sharp],
          patterns: [
            { group: ['express', 'express-*', '@nestjs/platform-express'], message: ofHttp },
            {
              group: ['@nestjs/common'],
              importNamePattern:
                '(Exception|^HttpStatus|^Re[qs]|^Response|^Headers|^ExecutionContext|^createParamDecorator)$',
              message: ofHttp,
            },
          ],
        },
      ],
    },
  },
];
/** Entities whose relations name each other. */
const related = [
  ...['collections/collection', 'styles/style', 'tasks/image', 'tasks/task'],
  ...['webhooks/webhook-attempt', 'webhooks/webhook-delivery'],
].map((name) => `libs/domain/src/${name}.ts`);
const cycles = [
  {
    files: ['**/*.{ts,tsx}'],
    plugins: { 'import-x': importX },
    settings: {
      'import-x/extensions': ['.ts', '.tsx'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts', '.tsx'] },
      'import-x/resolver-next': [
        createNodeResolver({
          extensions: ['.ts', '.tsx', '.js', '.json'],
          tsconfig: { configFile: join(import.meta.dirname, 'tsconfig.json') },
        }),
      ],
    },
    rules: { 'import-x/no-cycle': ['error', { ignoreExternal: true }] },
  },
  { files: related, rules: { 'import-x/no-cycle': 'off' } },
  {
    files: ['{apps,libs}/**/*.{ts,tsx}'],
    ignores: ['apps/**/*.spec.ts'],
    rules: { 'import-x/no-restricted-paths': ['error', { zones, basePath: import.meta.dirname }] },
  },
];
/** The page runs in a browser: of ours it has only the typed client. */
const page = {
  files: ['apps/web/src/**/*.{ts,tsx}'],
  ignores: ['**/*.spec.ts'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          { group: ['@app/*', '@nestjs/*', 'node:*'], message: 'The page has only what a browser has.' },
          { regex: '/packages/client/', message: 'Through service/client.ts.' },
        ],
      },
    ],
  },
};
export default tseslint.config(
  {
    ignores: ['**/dist', 'node_modules', '{.darkroom,.cache,models,coverage,try}', 'packages/client/src/schema.ts'],
  },
  js.configs.recommended,
  {
    // An expression that backtracks lets one text hold up everything, and each may get a caller's text.
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': 'error', 'regexp/no-super-linear-move': 'error' },
  },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false },
      ],
      'no-duplicate-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    // What is longer holds two thoughts. Migrations stay whole; the cases of a spec are read one at a time.
    files: ['**/*.{ts,tsx,mjs,cjs,js}'],
    ignores: ['**/*.spec.ts', 'libs/database/src/migrations/**'],
    rules: { 'max-lines': ['error', 250], 'max-lines-per-function': ['error', { max: 50, IIFEs: true }] },
  },
  { files: ['**/*.spec.ts'], rules: { 'max-lines': ['error', 700] } },
  {
    files: ['**/*.mjs', '**/*.cjs', '**/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        ['process', 'console', 'URL', 'require', 'module', '__dirname', 'setTimeout'].map((name) => [name, 'writable']),
      ),
    },
  },
  freeOfFramework,
  page,
  { files: ['apps/web/src/service/client.ts'], rules: { 'no-restricted-imports': 'off' } },
  ...requests,
  ...cycles,
);
