import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { misconfiguredExitCode } from '@app/process';
import { LogFile } from './log';
import { SupervisedProcess } from './supervised-process';

describe(SupervisedProcess.name, () => {
  let folder: string;
  let server: Server;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-supervised-'));
    server = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });

  const processOf = (program: string): SupervisedProcess => {
    const main = join(folder, 'main.cjs');
    writeFileSync(main, program);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const description = { name: 'api', main, env: {}, readyUrl: url, liveUrl: url, isDevelopment: false };
    return new SupervisedProcess(description, new LogFile(join(folder, 'api.log')), () => undefined);
  };
  const stop = (supervised: SupervisedProcess) => supervised.stop(10_000, new AbortController().signal);

  it('is not ready because another program answers at its address', async () => {
    const supervised = processOf(`process.exit(${misconfiguredExitCode})`);
    await expect(supervised.start()).rejects.toThrow('The api does not start');
    await stop(supervised);
  });

  it('is ready when it listens and answers', async () => {
    const supervised = processOf(`process.send('listening'); setInterval(() => undefined, 60_000);`);
    await expect(supervised.start()).resolves.toBeUndefined();
    await stop(supervised);
  });
});
