import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@app/config';
import { FileLock } from '@app/process';
import { InvalidArgumentError, Option } from 'commander';
import { CliError } from './run-program';

const pollMs = 100;

/** A running service, and how to restore its previous state. */
export interface RunningService {
  url: string;
  token: string;
  /** Stops the service if this call started it. */
  release(): Promise<void>;
}

/** Which service a command speaks to. The key is no option: other users of a machine may read its command lines. */
export const serviceOption = new Option(
  '--url <address>',
  'the service to use; without it, that of DATA_DIR, which is started if it is not running',
)
  .env('DARKROOM_URL')
  .argParser(readAddress);

export const serviceHelp = `
Environment:
  DARKROOM_URL      the address of the service, as --url names it
  DARKROOM_API_KEY  the key; without --url, that in DATA_DIR is used if there is none here
  DATA_DIR          the data folder of a service on this machine
`;

/** @returns an empty text for an empty variable, since commander takes no undefined */
function readAddress(text: string): string {
  const address = text.trim();
  if (address === '') return address;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return address;
  throw new InvalidArgumentError('It must be an address such as http://localhost:3000.');
}

/**
 * Finds a service.
 * @param address without one, or with an empty one: the service of the data folder, which is started if it does not run
 */
export async function useService(address: string | undefined, say: (line: string) => void): Promise<RunningService> {
  const apiKey = process.env.DARKROOM_API_KEY?.trim() || undefined;
  if (!address) return serviceOf(loadConfig(process.env).dataDir, apiKey, say);
  // The key in the data folder is not sent to an address that need not be this machine's.
  if (apiKey === undefined) throw new CliError(`DARKROOM_API_KEY is not set: write there a key of ${address}.`);
  return { url: address, token: apiKey, release: async () => undefined };
}

async function serviceOf(
  dataDir: string,
  apiKey: string | undefined,
  say: (line: string) => void,
): Promise<RunningService> {
  const found = await findUrl(dataDir);
  if (found) return { url: found, token: apiKey ?? readToken(dataDir), release: async () => undefined };
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
    return { url, token: apiKey ?? readToken(dataDir), release };
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

/** On a free port, because only this process uses it. It ends when this process does, however that ends. */
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
