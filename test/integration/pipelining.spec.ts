import { readdirSync, readlinkSync } from 'node:fs';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { startTestApi } from '../support/api';
import { drawTask } from '../support/factories';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

describe('pipelined requests on one connection', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());
  let picture: string;

  beforeAll(async () => {
    const made = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star' } });
    await drawTask(api, made.body.id);
    const { body } = await api.request<{ images: string[] }>('GET', `/v1/sd/text-to-image/${made.body.id}`, { key });
    picture = new URL(body.images[0]).pathname;
  });

  const send = (requests: string[], { reads = true } = {}): { socket: Socket; answers: () => string } => {
    const socket = connect(Number(new URL(api.baseUrl).port), '127.0.0.1');
    let answers = '';
    if (reads) socket.on('data', (chunk: Buffer) => (answers += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.write(requests.map((request) => `${request}\r\nHost: x\r\n\r\n`).join(''));
    return { socket, answers: () => answers };
  };
  const statuses = (answers: string): string[] => answers.match(/HTTP\/1\.1 \d+(?= [A-Z])/g) ?? [];
  const openPictures = (): number =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).includes('/images/');
      } catch {
        return false;
      }
    }).length;

  it('are all answered in order, however many came at once', async () => {
    const several = ['GET /health/live HTTP/1.1', `HEAD ${picture} HTTP/1.1`, 'GET /v1/models HTTP/1.1'];
    const { socket, answers } = send(Array.from({ length: 1_500 }, (_, n) => several[n % 3]));
    await until(async () => statuses(answers()).length === 1_500, 'all are answered');
    expect(new Set(statuses(answers()).filter((_, n) => n % 3 === 0))).toEqual(new Set(['HTTP/1.1 200']));
    expect(new Set(statuses(answers()).filter((_, n) => n % 3 === 1))).toEqual(new Set(['HTTP/1.1 200']));
    expect(new Set(statuses(answers()).filter((_, n) => n % 3 === 2))).toEqual(new Set(['HTTP/1.1 401']));
    socket.destroy();
  });

  it('have their bodies read one after the other', async () => {
    const body = JSON.stringify({ prompt: 'a star', steps: 2 });
    const head = `POST /v1/sd/text-to-image HTTP/1.1\r\nAuthorization: Bearer ${key.token}\r\nContent-Type: application/json`;
    const socket = connect(Number(new URL(api.baseUrl).port), '127.0.0.1');
    let answers = '';
    socket.on('data', (chunk: Buffer) => (answers += chunk.toString()));
    socket.write(`${head}\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`.repeat(20));
    await until(async () => statuses(answers).length === 20, 'all are answered');
    expect(new Set(statuses(answers))).toEqual(new Set(['HTTP/1.1 201']));
    socket.destroy();
  });

  it('delay no other connection, and leave nothing open when theirs closes', async () => {
    const floods = Array.from({ length: 3 }, () =>
      send(Array<string>(1_000).fill(`GET ${picture} HTTP/1.1`), { reads: false }),
    );
    await once(floods[0].socket, 'connect');
    const startedAt = performance.now();
    for (let n = 0; n < 20; n++) expect((await api.request('GET', '/v1/models', { key })).status).toBe(200);
    // Without the limit, one of them waited for seconds.
    expect((performance.now() - startedAt) / 20).toBeLessThan(1_000);
    for (const { socket } of floods) socket.destroy();
    await until(async () => openPictures() === 0, 'no picture is open');
  });
});
