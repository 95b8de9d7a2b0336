import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import js from '@eslint/js';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/** Which of our own libraries a folder may import. Everything else of ours is refused, and apps never import apps. */
const allowed = {
  'libs/domain': [],
  'libs/diffusion': [],
  'libs/process': [],
  'libs/config': ['process'],
  'libs/observability': ['config'],
  'libs/storage': ['config'],
  'libs/database': ['domain', 'process'],
  'libs/queue': ['config', 'database', 'domain', 'process'],
  'libs/image-tasks': ['database', 'domain', 'queue'],
  'libs/model-store': ['diffusion', 'process'],
  'libs/foundation': ['config', 'database', 'image-tasks', 'observability', 'process', 'queue', 'storage'],
};
const libs = readdirSync(join(import.meta.dirname, 'libs'));
for (const lib of libs)
  if (!(`libs/${lib}` in allowed)) throw new Error(`libs/${lib} has no rule of what it may import.`);
const deep = {
  group: ['@app/*/*', '!@app/diffusion/files', '!@app/domain/http', '**/libs/*'],
  message: 'Import a library through one of its entries: @app/<name>.',
};
/** The half of `libs/domain` that describes requests and answers, which none but the api loads. */
const httpOfDomain = ['libs/domain/src/http.ts', 'libs/domain/src/**/*.dto.ts', 'libs/domain/src/fields/field*.ts'];
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
/** Files of the api that run in its picture process. */
const pictureProcess = ['picture-child', 'sandbox-picture', 'thumbnail'].map(
  (name) => `apps/api/src/pictures/${name}.ts`,
);
const requests = {
  files: ['apps/api/**/*.ts'],
  ignores: pictureProcess,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { paths: [{ name: 'sharp', message: 'Pictures are drawn, decoded and encoded in the picture process.' }] },
    ],
  },
};
const apps = ['api', 'inference', 'launcher', 'cli'].map((app) => ({
  files: [`apps/${app}/**/*.ts`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          deep,
          {
            regex: `^(\\.\\./)+(?:apps/)?(?!${app}/)(api|inference|launcher|cli)/src`,
            message: 'An app never imports another app.',
          },
        ],
      },
    ],
  },
}));

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
    // An expression that backtracks lets one text hold up everything, and none here is only ever given texts of our own.
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': 'error', 'regexp/no-super-linear-move': 'error' },
  },
  {
    files: ['**/*.ts'],
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
    // What is longer holds two thoughts. A statement of the database stays whole, and so does the text of a migration.
    files: ['**/*.{ts,mjs,cjs,js}'],
    ignores: ['**/*.spec.ts', 'libs/database/src/migrations/**'],
    rules: { 'max-lines': ['error', 250], 'max-lines-per-function': ['error', { max: 50, IIFEs: true }] },
  },
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
  requests,
);
