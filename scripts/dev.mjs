import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { clearTimeout, setTimeout } from 'node:timers';
import { setTimeout as delay } from 'node:timers/promises';
import { styleText } from 'node:util';
import { buildIfNeeded, builtFrom, root } from './build.mjs';
import { prepare } from './prepare.mjs';

/** `npm run dev`: runs the service like `npm start`, and rebuilds and restarts it whenever a source is saved. */

const launcher = join(root, 'dist', 'apps', 'launcher', 'src', 'main.js');
/** Editors write a file in several steps, and switching branches writes many files. */
const quietMs = 200;
/** A picture being drawn starts over after the restart, so a long wait is pointless. */
const drainMs = 2_000;

const hasColour = process.env.FORCE_COLOR ? true : process.stdout.isTTY && !process.env.NO_COLOR;
const colour = (format, text) => (hasColour ? styleText(format, text, { validateStream: false }) : text);
const nameColours = { api: 'blue', inference: 'magenta' };

/** Prints a line of the launcher, which begins with the name of the process: `api: warning: …`. */
function say(line) {
  const [, name, text] = /^(api|inference): (.*)$/.exec(line) ?? [undefined, 'dev', line];
  const format = /^(error|fatal): /.test(text) ? 'red' : text.startsWith('warning: ') ? 'yellow' : 'reset';
  const time = new Date().toTimeString().slice(0, 8);
  console.log(`${colour('dim', time)} ${colour(nameColours[name] ?? 'green', name.padEnd(9))} ${colour(format, text)}`);
}

class Service {
  startedFrom = builtFrom();
  isStopping = false;

  constructor(...args) {
    // A process group of its own keeps Ctrl-C away, because this process ends the service. The IPC channel shows the
    // launcher when this process has ended.
    this.child = spawn(process.execPath, ['--enable-source-maps', launcher, '--development', ...args], {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const input of [this.child.stdout, this.child.stderr]) createInterface({ input }).on('line', say);
    this.ended = once(this.child, 'close').then(([code]) => {
      if (this.isStopping) return;
      // It exits with success at once if another one is running on the same data.
      if (code === 0) process.exit(1);
      say('It starts again when a source is saved.');
    });
  }

  /** A second call kills it at once. */
  async stop() {
    this.isStopping = true;
    this.child.kill('SIGTERM');
    await this.ended;
  }
}

await prepare();
let service = new Service();
let isEnding = false;
let hasChanged = false;
let isRestarting = false;

async function restart() {
  hasChanged = true;
  if (isRestarting) return;
  isRestarting = true;
  while (hasChanged && !isEnding) {
    await delay(quietMs);
    hasChanged = false;
    await bringUpToDate();
  }
  isRestarting = false;
}

let watchers = [];

/** Watches each folder separately: on Linux, Node's recursive watch loses a file that an editor has replaced. */
function watchSources() {
  // The page is also built from the client, the documentation and the document.
  const folders = ['apps', 'libs', 'packages/client/src', 'docs'].flatMap((name) => [
    join(root, name),
    ...readdirSync(join(root, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  ]);
  for (const watcher of watchers) watcher.close();
  watchers = folders.map((folder) => watch(folder, () => void restart()));
  watchers.push(watch(root, (_, name) => void (name === 'openapi.json' && restart())));
}

async function bringUpToDate() {
  try {
    watchSources();
    await buildIfNeeded();
  } catch (error) {
    // The compiler's own stack follows.
    return error.message
      .split('Caused by:')[0]
      .trimEnd()
      .split('\n')
      .forEach((line) => say(`error: ${line}`));
  }
  if (builtFrom() === service.startedFrom) return;
  say('Restarting …');
  const hurry = setTimeout(() => void service.stop(), drainMs);
  await service.stop();
  clearTimeout(hurry);
  if (!isEnding) service = new Service('--no-welcome');
}

watchSources();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => {
    isEnding = true;
    void service.stop().then(() => process.exit(0));
  });
