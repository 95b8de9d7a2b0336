// In a test `process.env` is a copy; ONNX Runtime obeys that of the process, which Jest's own processes inherit.
process.env.ORT_DISABLE_TELEMETRY = '1';

const base = {
  rootDir: '.',
  testEnvironment: '<rootDir>/test/support/process-environment.cjs',
  runtime: '<rootDir>/test/support/process-runtime.cjs',
  transform: { '^.+\\.(t|mj|j)s$': '@swc/jest' },
  transformIgnorePatterns: ['/node_modules/', '<rootDir>/dist/'],
  moduleNameMapper: {
    '^@app/([^/]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^@app/(diffusion|domain)/(files|http)$': '<rootDir>/libs/$1/src/$2.ts',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/.darkroom/', '<rootDir>/.cache/'],
};
const project = (displayName, testMatch, extra = {}) => ({ ...base, displayName, testMatch, ...extra });
const database = {
  globalSetup: '<rootDir>/test/support/global-setup.cjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.cjs',
};

/** Spec files of `integration` and `e2e` that also run on Redis and S3: what wakes workers up, and what is stored. */
const scaleOut = [
  'integration/backup',
  'integration/deletion',
  'integration/finetune-weights',
  'integration/inference',
  'integration/inference-health',
  'integration/inference-sweeper',
  'integration/observability',
  'integration/retention',
  'e2e/story',
];

/**
 * unit: milliseconds, no database and no app. golden: arrays recorded from diffusers. integration: real PostgreSQL and
 * queue. e2e: both apps as processes. Only `npm run test:all` runs the others; scale-out: some of these two again, on
 * Redis and S3; slow: minutes, and programs from package registries.
 */
export default {
  projects: [
    project('unit', ['<rootDir>/{apps,libs,packages}/**/*.spec.ts']),
    project('golden', ['<rootDir>/test/golden/**/*.spec.ts']),
    project('integration', ['<rootDir>/test/integration/**/*.spec.ts'], database),
    project('e2e', ['<rootDir>/test/e2e/**/*.spec.ts'], database),
    project('slow', ['<rootDir>/test/slow/**/*.spec.ts'], database),
    project(
      'scale-out',
      scaleOut.map((name) => `<rootDir>/test/${name}.spec.ts`),
      { ...database, setupFilesAfterEnv: ['<rootDir>/test/support/scale-out.setup.ts'] },
    ),
  ],
  testSequencer: '<rootDir>/test/support/longest-first.cjs',
  // One more than the cores of a small machine: a file waits about as long as it works, for processes of its own.
  maxWorkers: 3,
  // Ten times what the longest takes on an idle machine: it ends what hangs, and judges nobody's speed.
  testTimeout: 300_000,
};
