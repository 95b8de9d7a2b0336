import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeFolder } from '@app/process';
import { StartError } from './start-error';

/** Makes the data folder. @throws StartError when it is not writable. */
export function prepareDataFolder(dataDir: string): void {
  const probe = join(dataDir, '.writable');
  try {
    makeFolder(dataDir, 0o700);
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartError(`The data folder ${dataDir} cannot be written (${code}): set DATA_DIR to another one.`);
  }
}

/** @throws StartError when no model is installed. */
export function requireModel(modelsDir: string): void {
  const names = existsSync(modelsDir) ? readdirSync(modelsDir) : [];
  if (!names.some((name) => existsSync(join(modelsDir, name, 'model_index.json'))))
    throw new StartError(
      `There is no model in ${modelsDir}: restore the folder "shapes" that comes with Darkroom, install a model with "npm run models -- add", or set MODELS_DIR.`,
    );
}

/**
 * Waits until the port is free.
 * @returns the port; for 0 a free one.
 * @throws StartError when it is still in use after `waitMs`.
 */
export async function requirePort(port: number, host: string, waitMs: number): Promise<number> {
  for (const deadline = Date.now() + waitMs; ; await delay(50))
    try {
      return await probePort(port, host);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EADDRINUSE' && Date.now() < deadline) continue;
      throw new StartError(explain(code, port, host));
    }
}

async function probePort(port: number, host: string): Promise<number> {
  const server = createServer().listen({ port, host, exclusive: true });
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return address.port;
}

function explain(code: string | undefined, port: number, host: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is used by another program: end that, or set PORT to another port.`;
    case 'EACCES':
      return `This user may not listen on port ${port}: set PORT to one above 1023.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `HOST is "${host}", which is no address of this machine.`;
    default:
      return `Port ${port} of ${host} cannot be listened on (${code}).`;
  }
}
