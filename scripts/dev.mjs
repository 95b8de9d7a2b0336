import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { clearTimeout, setTimeout } from 'node:timers';
import { setTimeout as delay } from 'node:timers/promises';
import { styleText } from 'node:util';
import { buildIfNeeded, builtFrom } from './build.mjs';
import { prepare } from './prepare.mjs';

/** `npm run dev`: runs the service as `npm start` does, and builds and starts it again whenever a source is saved. */

const root = dirname(import.meta.dirname);
const launcher = join(root, 'dist', 'apps', 'launcher', 'src', 'main.js');
/** An editor writes a file in several steps, and a change of branch many files. */
const quietMs = 200;
/** A picture that is being drawn begins anew after the restart; nobody waits for it here. */
const drainMs = 2_000;

const hasColour = process.env.FORCE_COLOR ? true : process.stdout.isTTY && !process.env.NO_COLOR;
const colour = (format, text) => (hasColour ? styleText(format, text, { validateStream: false }) : text);
const nameColours = { api: 'blue', inference: 'magenta' };

/** Prints a line of the launcher, which begins with the process that it comes from: `api: warning: …`. */
function say(line) {
  const [, name, text] = /^(api|inference): (.*)$/.exec(line) ?? [undefined, 'dev', line];
  const format = /^(error|fatal): /.test(text) ? 'red' : text.startsWith('warning: ') ? 'yellow' : 'reset';
  const time = new Date().toTimeString().slice(0, 8);
  console.log(`${colour('dim', time)} ${colour(nameColours[name] ?? 'green', name.padEnd(9))} ${colour(format, text)}`);
}

/** The service, from its start to its end. */
class Service {
  startedFrom = builtFrom();
  isStopping = false;

  constructor(...args) {
    // A session of its own keeps Ctrl-C away: this process says when the service ends. The channel tells of this process's end.
    this.child = spawn(process.execPath, ['--enable-source-maps', launcher, '--development', ...args], {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const input of [this.child.stdout, this.child.stderr]) createInterface({ input }).on('line', say);
    this.ended = once(this.child, 'close').then(([code]) => {
      if (this.isStopping) return;
      // It ends well and unasked where another one runs on the same data.
      if (code === 0) process.exit(1);
      say('It starts again when a source is saved.');
    });
  }

  /** A second call hurries. */
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

/** Watches each folder by itself: Node's recursive watch on Linux loses a file that an editor has replaced. */
function watchSources() {
  const folders = ['apps', 'libs'].flatMap((name) => [
    join(root, name),
    ...readdirSync(join(root, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  ]);
  for (const watcher of watchers) watcher.close();
  watchers = folders.map((folder) => watch(folder, () => void restart()));
}

async function bringUpToDate() {
  try {
    watchSources();
    await buildIfNeeded();
  } catch (error) {
    // What follows is the compiler's own stack.
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
