import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '@app/config';
import { FileLock } from '@app/process';
import { CliError } from './run-program';

const pollMs = 100;

/** A running service, and how to restore its previous state. */
export interface RunningService {
  url: string;
  /** The key stored in the data folder. */
  token: string;
  /** Stops the service if this call started it. */
  release(): Promise<void>;
}

/** Finds the service of a data folder, waits for it if it is starting, or starts it. */
export async function useService(config: Config, say: (line: string) => void): Promise<RunningService> {
  const found = await findUrl(config.dataDir);
  if (found) return { url: found, token: readToken(config.dataDir), release: async () => undefined };
  say('Starting Darkroom for this; it is faster while "npm start" is running.');
  const launcher = startLauncher();
  const url = await Promise.race([
    once(launcher, 'message').then(([message]: { url: string }[]) => message.url),
    once(launcher, 'exit').then(() => {
      throw new CliError('Darkroom did not start.');
    }),
  ]);
  const release = async (): Promise<void> => {
    if (launcher.exitCode !== null || launcher.signalCode !== null) return;
    const ended = once(launcher, 'exit');
    launcher.kill('SIGTERM');
    await ended;
  };
  try {
    return { url, token: readToken(config.dataDir), release };
  } catch (error) {
    await release();
    throw error;
  }
}

async function findUrl(dataDir: string): Promise<string | undefined> {
  for (;;) {
    const holder = FileLock.holder(join(dataDir, 'launcher.lock'));
    if (!holder || holder.url) return holder?.url;
    await delay(pollMs);
  }
}

/** Starts it on a free port, because only this process uses it. It ends when this process does, in whatever way. */
function startLauncher(): ChildProcess {
  const main = join(__dirname, '..', '..', 'launcher', 'src', 'main.js');
  const launcher = fork(main, {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    detached: true,
  });
  return launcher;
}

function readToken(dataDir: string): string {
  const file = join(dataDir, 'api-key');
  if (!existsSync(file))
    throw new CliError(
      `There is no API key in ${file}: write one there, made with "npm run keys -- create --name demo".`,
    );
  return readFileSync(file, 'utf8').trim();
}
