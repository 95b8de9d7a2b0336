import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Config, healthHostOf } from '@app/config';
import { defaults } from '@app/domain';
import { demoModel } from '@app/model-store';
import {
  DataFolderError,
  ListenError,
  type ListenPlace,
  makeFolder,
  misconfiguredExitCode,
  StartError,
} from '@app/process';

/** Makes the data folder. @throws DataFolderError when it is not writable. */
export function prepareDataFolder(dataDir: string): void {
  const probe = join(dataDir, '.writable');
  try {
    makeFolder(dataDir, 0o700);
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (error) {
    throw new DataFolderError(dataDir, error);
  }
}

/** Whether a folder has a model in one file. */
const holdsCheckpoint = (folder: string): boolean =>
  statSync(folder).isDirectory() && readdirSync(folder).some((name) => name.endsWith('.safetensors'));

/**
 * @returns the models' names, as their folders tell, of which no file is read; first those that certainly draw
 * @throws StartError when no model is installed
 */
export function requireModel(modelsDir: string): string[] {
  const names = existsSync(modelsDir) ? readdirSync(modelsDir).sort() : [];
  const hasParts = (name: string): boolean => existsSync(join(modelsDir, name, 'vae'));
  const isFile = (name: string): boolean => name !== 'upscalers' && holdsCheckpoint(join(modelsDir, name));
  // A checkpoint may be a ControlNet, which draws nothing alone.
  const models = [...names.filter(hasParts), ...names.filter((name) => !hasParts(name) && isFile(name))];
  if (models.length === 0)
    throw new StartError(
      `There is no model in ${modelsDir}: restore the folder "shapes" that comes with Darkroom, install a model with "npm run models -- add", or set MODELS_DIR.`,
    );
  return models;
}

/** The model that a first request has to name; undefined where one that names none is drawn. */
export function modelToName(models: readonly string[], modelFallback: boolean): string | undefined {
  const isServed = models.includes(defaults.model) || (modelFallback && models.includes(demoModel));
  if (isServed) return undefined;
  return models.includes(demoModel) ? demoModel : models[0];
}

/**
 * The ports of the api and of the worker's health checks; for 0 a free one.
 * @throws StartError when one is still in use after `waitMs`, or cannot be listened on at all.
 */
export async function requirePorts(
  config: Pick<Config, 'port' | 'host' | 'inferenceHealthPort'>,
  waitMs: number,
): Promise<{ port: number; healthPort: number }> {
  const { port, host, inferenceHealthPort } = config;
  if (port !== 0 && port === inferenceHealthPort) {
    const sentence = `PORT and INFERENCE_HEALTH_PORT are both ${port}: set one of them to another port.`;
    throw new StartError(sentence, misconfiguredExitCode);
  }
  const health = { variable: 'INFERENCE_HEALTH_PORT', port: inferenceHealthPort, host: healthHostOf(config) };
  return {
    port: await requirePort({ variable: 'PORT', port, host, hostVariable: 'HOST' }, waitMs),
    healthPort: await requirePort(health, waitMs),
  };
}

async function requirePort(place: ListenPlace, waitMs: number): Promise<number> {
  for (const deadline = Date.now() + waitMs; ; await delay(50))
    try {
      return await probePort(place);
    } catch (error) {
      const { code, message, exitCode } = new ListenError(error, place);
      if (code === 'EADDRINUSE' && Date.now() < deadline) continue;
      throw new StartError(message, exitCode);
    }
}

async function probePort({ port, host }: ListenPlace): Promise<number> {
  const server = createServer().listen({ port, host, exclusive: true });
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return address.port;
}
