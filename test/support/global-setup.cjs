const { execFileSync } = require('node:child_process');
const { accessSync, constants, readFileSync, readdirSync, rmSync, statfsSync } = require('node:fs');
const { chmodSync, mkdirSync, mkdtempSync } = require('node:fs');
const { freemem, tmpdir } = require('node:os');
const { join } = require('node:path');

const root = join(__dirname, '..', '..');
const template = 'template_darkroom';
/** Paths of sockets have at most 103 characters (macOS, the fewest); PostgreSQL's file name takes 15 with the slash. */
const longestSocketFolder = 103 - 15;

/** In memory, on Linux. */
const shared = '/dev/shm';
const prefix = 'darkroom-tests-';
/** Three times the most that a run has in temporary files. */
const neededThereBytes = 2 * 2 ** 30;
const neededMemoryBytes = 6 * 2 ** 30;

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
    // With the default of one gigabyte a run would fill it.
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
};

/** PostgreSQL may run as another user. Undefined on Windows, and where the socket's path would be too long. */
function makeSocketFolder(folder) {
  const sockets = join(folder, 'sockets');
  if (process.platform === 'win32' || sockets.length > longestSocketFolder) return undefined;
  mkdirSync(sockets);
  chmodSync(sockets, 0o777);
  return sockets;
}

/** A Unix socket saves a fifth of a statement's processor time. The launcher's tests and the torture use TCP. */
function throughSocket(url, sockets) {
  const address = new URL(url);
  if (sockets) address.searchParams.set('host', sockets);
  return address.href;
}

/**
 * A folder in memory for a run's temporary files: on some disks making a database's files takes ten times as long.
 * @returns undefined where there is no such place, or too little of it
 */
function makeMemoryFolder() {
  if (!isUsable()) return undefined;
  removeLeftovers();
  return mkdtempSync(join(shared, `${prefix}${process.pid}-`));
}

function isUsable() {
  try {
    accessSync(shared, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(shared);
    return bavail * bsize >= neededThereBytes && freemem() >= neededMemoryBytes && allowsPrograms();
  } catch {
    return false;
  }
}

/** Containers often forbid it there; if tests run as root, PostgreSQL's programs are copied to a temporary folder. */
function allowsPrograms() {
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === shared);
  return mount !== undefined && !mount.split(' ')[3].split(',').includes('noexec');
}

/** Of killed runs; what cannot be removed, such as a mounted folder, stays. */
function removeLeftovers() {
  for (const name of readdirSync(shared)) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (!pid || isRunning(Number(pid))) continue;
    try {
      rmSync(join(shared, name), { recursive: true, force: true });
    } catch (error) {
      console.warn(`${join(shared, name)} is left from another run: ${error.message}`);
    }
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}
