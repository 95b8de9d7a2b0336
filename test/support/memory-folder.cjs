const { accessSync, constants, mkdtempSync, readFileSync, readdirSync, rmSync, statfsSync } = require('node:fs');
const { freemem } = require('node:os');
const { join } = require('node:path');

/** A file system in memory, where Linux has one. */
const shared = '/dev/shm';
const prefix = 'darkroom-tests-';
/** Three times what a run has in its temporary files at a time. */
const neededThereBytes = 2 * 2 ** 30;
const neededMemoryBytes = 6 * 2 ** 30;

/**
 * Makes a folder in memory for the temporary files of a run: on some disks it takes ten times as long to make the files
 * of a database.
 * @returns undefined where there is no such place, or too little of it
 */
exports.makeMemoryFolder = function makeMemoryFolder() {
  if (!isUsable()) return undefined;
  removeLeftovers();
  return mkdtempSync(join(shared, `${prefix}${process.pid}-`));
};

function isUsable() {
  try {
    accessSync(shared, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(shared);
    return bavail * bsize >= neededThereBytes && freemem() >= neededMemoryBytes && allowsPrograms();
  } catch {
    return false;
  }
}

/**
 * Containers often forbid it there; PostgreSQL's programs are copied to a temporary folder if the tests run as root.
 */
function allowsPrograms() {
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === shared);
  return mount !== undefined && !mount.split(' ')[3].split(',').includes('noexec');
}

/** Those of runs that were killed. */
function removeLeftovers() {
  for (const name of readdirSync(shared)) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (pid && !isRunning(Number(pid))) rmSync(join(shared, name), { recursive: true, force: true });
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}
