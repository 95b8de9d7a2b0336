const { execFileSync } = require('node:child_process');
const { chmodSync, mkdirSync, mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { makeMemoryFolder } = require('./memory-folder.cjs');

const root = join(__dirname, '..', '..');
const template = 'template_darkroom';
/** A socket's path has 103 characters at most on macOS, the fewest; PostgreSQL's name for it has 15 with the slash. */
const longestSocketFolder = 103 - 15;

/**
 * One PostgreSQL for the whole run, with one migrated database that every spec file copies (see database.ts), and one
 * folder of models.
 */
module.exports = async function globalSetup() {
  execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs'), '--if-needed'], { stdio: 'inherit' });
  const { EmbeddedPostgres, migrate } = require(join(root, 'dist', 'libs', 'database', 'src', 'index.js'));
  const folder = makeMemoryFolder() ?? mkdtempSync(join(tmpdir(), 'darkroom-test-'));
  // If the tests run as root, PostgreSQL's unprivileged user could not enter a temporary folder otherwise.
  chmodSync(folder, 0o711);
  const sockets = makeSocketFolder(folder);
  const settings = {
    ...(sockets && { unix_socket_directories: sockets }),
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    max_connections: '300',
    // A run would fill the gigabyte that it is by default.
    max_wal_size: '256MB',
  };
  const postgres = await EmbeddedPostgres.start(folder, { settings });
  globalThis.testPostgres = { postgres, folder };
  const { Client } = require('pg');
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${template}`);
  await client.end();
  const url = new URL(postgres.url);
  url.pathname = template;
  await migrate(url.href);
  const models = join(folder, 'models');
  require(join(root, 'dist', 'test', 'support', 'quick-model.js')).makeModelsFolder(models);
  const { whyNoRedis } = require('./redis');
  if (whyNoRedis) {
    console.warn(`The tests on Redis are skipped: ${whyNoRedis}.`);
    process.env.TEST_WITHOUT_REDIS = 'true';
  }
  // Spec files run in other processes, which inherit the environment.
  process.env.TMPDIR = folder;
  process.env.TEST_DATABASE_URL = throughSocket(postgres.url, sockets);
  process.env.TEST_DATABASE_TEMPLATE = template;
  process.env.TEST_MODELS_DIR = models;
  process.env.TEST_GRAPHS_DIR = join(folder, 'graphs');
  mkdirSync(process.env.TEST_GRAPHS_DIR);
  // Otherwise the S3 client would warn about the Node version in every file.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
};

/**
 * Where PostgreSQL, which may run as another user, puts its socket; undefined on Windows, and in a folder of so long a
 * name that the socket's would be too long.
 */
function makeSocketFolder(folder) {
  const sockets = join(folder, 'sockets');
  if (process.platform === 'win32' || sockets.length > longestSocketFolder) return undefined;
  mkdirSync(sockets);
  chmodSync(sockets, 0o777);
  return sockets;
}

/**
 * A statement takes a fifth less processor time through a Unix socket than through TCP, by which the launcher's tests
 * and the torture reach their database.
 */
function throughSocket(url, sockets) {
  const address = new URL(url);
  if (sockets) address.searchParams.set('host', sockets);
  return address.href;
}
