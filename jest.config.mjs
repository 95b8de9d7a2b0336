const base = {
  rootDir: '.',
  testEnvironment: '<rootDir>/test/support/node-environment.cjs',
  transform: { '^.+\\.(t|mj|j)s$': '@swc/jest' },
  transformIgnorePatterns: [
    '/node_modules/(?!(@nestjs|request-filtering-agent|file-type|strtok3|token-types|uint8array-extras|@tokenizer|@borewit)/)',
  ],
  moduleNameMapper: { '^@app/([^/]+)$': '<rootDir>/libs/$1/src/index.ts' },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.darkroom/'],
};
const project = (displayName, testMatch, extra = {}) => ({ ...base, displayName, testMatch, ...extra });
const database = {
  globalSetup: '<rootDir>/test/support/global-setup.cjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.cjs',
};

/** unit: milliseconds, no I/O. golden: arrays recorded from diffusers. integration: real PostgreSQL and queue. e2e: both apps as processes. */
export default {
  projects: [
    project('unit', ['<rootDir>/{apps,libs,packages}/**/*.spec.ts']),
    project('golden', ['<rootDir>/test/golden/**/*.spec.ts']),
    project('integration', ['<rootDir>/test/integration/**/*.spec.ts'], database),
    project('e2e', ['<rootDir>/test/e2e/**/*.spec.ts'], database),
  ],
  testTimeout: 60_000,
};
