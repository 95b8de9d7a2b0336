import { join } from 'node:path';
import js from '@eslint/js';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';
import { apps, deep, insideApps } from './eslint.folders.mjs';
import { allowed, libs } from './eslint.imports.mjs';

/** The half of `libs/domain` that describes requests and answers, which none but the api loads. */
const httpOfDomain = [
  'libs/domain/src/http.ts',
  'libs/domain/src/**/*.dto{,.spec}.ts',
  'libs/domain/src/fields/field*.ts',
];
const ofRequests = '^\\.{1,2}/(?:.*\\.dto|http|(?:.*/)?fields/field[\\w-]*|fields[\\w-]*|field-rule)$';
const direction = Object.entries(allowed).map(([folder, names]) => ({
  files: [`${folder}/**/*.ts`],
  ignores: httpOfDomain,
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          deep,
          { group: ['@app/domain/http'], message: 'Only the api describes its requests and answers.' },
          { group: ['**/apps/**'], message: 'Libraries never import apps.' },
          {
            group: libs.filter((name) => !names.includes(name)).map((name) => `@app/${name}`),
            message: `${folder} may import only: ${names.join(', ') || 'none of our libraries'}.`,
          },
          ...(folder === 'libs/diffusion' || folder === 'libs/domain'
            ? [
                {
                  group: ['@nestjs/*', 'class-*', 'pino'],
                  message: `${folder} is free of the framework.`,
                },
                { regex: ofRequests, message: 'What the worker loads describes no requests.' },
              ]
            : []),
        ],
      },
    ],
  },
}));
const domainHttp = {
  files: httpOfDomain,
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          { group: ['@app/*', '**/apps/**', '**/libs/*'], message: 'libs/domain imports nothing of ours.' },
          {
            group: ['@nestjs/*', '!@nestjs/swagger', '!@nestjs/common', 'pino'],
            message: 'Only what describes fields.',
          },
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
    files: ['apps/api/**/*.ts'],
    rules: { '@typescript-eslint/no-restricted-imports': ['error', { paths: [sharp] }] },
  },
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
            // What it takes to send a request is another matter.
            {
              group: ['node:http', 'node:https'],
              importNamePattern: '^(IncomingMessage|OutgoingMessage|ServerResponse|Server|createServer)$',
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
          {
            regex: '^(\\.\\./)+(apps|libs)/',
            message: 'The page knows the service by packages/client.',
          },
          { regex: '/packages/client/', message: 'Through service/client.ts.' },
        ],
      },
    ],
  },
};
const pageClient = { files: ['apps/web/src/service/client.ts'], rules: { 'no-restricted-imports': 'off' } };

export default tseslint.config(
  {
    ignores: [
      'dist',
      'node_modules',
      '.darkroom',
      '.cache',
      'models',
      'coverage',
      'packages/*/dist',
      'packages/client/src/schema.ts',
    ],
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
        { fixStyle: 'separate-type-imports', disallowTypeAnnotations: false },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    // What is longer holds two thoughts. Migrations stay whole.
    files: ['**/*.{ts,tsx,mjs,cjs,js}'],
    ignores: ['**/*.spec.ts', 'libs/database/src/migrations/**'],
    rules: { 'max-lines': ['error', 250], 'max-lines-per-function': ['error', { max: 50, IIFEs: true }] },
  },
  // One file for each resource: every file costs a start of the api and a database.
  { files: ['**/*.spec.ts'], rules: { 'max-lines': ['error', 700] } },
  {
    files: ['**/*.mjs', '**/*.cjs', '**/*.js'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        require: 'readonly',
        module: 'writable',
        __dirname: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
  ...direction,
  domainHttp,
  ...apps,
  page,
  pageClient,
  ...insideApps,
  ...requests,
  ...cycles,
);
