import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { postBytes } from './post-bytes';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe(postBytes.name, () => {
  let answer: (response: ServerResponse) => unknown;
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  const post = (timeoutMs: number) =>
    postBytes(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, 'x', {
      ...{ headers: {}, timeoutMs, mostBytes: 10_000 },
    });
  beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  afterAll(() => server.close().closeAllConnections());

  it('gives an answer', async () => {
    answer = (response) => response.end('yes');
    expect((await post(60_000)).toString()).toBe('yes');
  });

  it('ends in time, also where an answer drips and garbage is collected meanwhile', async () => {
    let drips: NodeJS.Timeout | undefined;
    answer = (response) => {
      response.writeHead(200);
      drips = setInterval(() => {
        collectGarbage();
        response.write(' ');
      }, 20);
      response.on('close', () => clearInterval(drips));
    };
    await expect(post(500)).rejects.toThrow('timeout');
    clearInterval(drips);
  });

  it('reads no more than it may', async () => {
    answer = (response) => response.end('x'.repeat(20_000));
    await expect(post(60_000)).rejects.toThrow('it answers more than 10000 bytes');
  });

  it('says what was answered in place of an answer', async () => {
    answer = (response) => response.writeHead(500).end();
    await expect(post(60_000)).rejects.toThrow(/^it answers 500$/);
  });
});
