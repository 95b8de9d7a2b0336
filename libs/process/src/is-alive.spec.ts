import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { isAlive } from './is-alive';

describe(isAlive.name, () => {
  const ask = async (server: Server, timeoutMs = 10_000): Promise<boolean> => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/health/live`;
    try {
      return await isAlive(url, timeoutMs);
    } finally {
      server.close();
    }
  };

  it.each([200, 503])('is true for a process that answers with %s', async (status) => {
    expect(await ask(createHttpServer((_, response) => response.writeHead(status).end()))).toBe(true);
  });

  it('is true for a process that has no room for the connection', async () => {
    expect(await ask(createServer((socket) => socket.destroy()))).toBe(true);
    expect(await ask(createServer((socket) => socket.resetAndDestroy()))).toBe(true);
  });

  it('is false for a process that is silent, or not there', async () => {
    const silent = createServer((socket) => setTimeout(() => socket.destroy(), 500));
    expect(await ask(silent, 100)).toBe(false);
    expect(await isAlive('http://127.0.0.1:1/health/live', 1_000)).toBe(false);
  });
});
