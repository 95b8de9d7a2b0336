import { once } from 'node:events';
import {
  Agent,
  createServer,
  get,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Response } from 'express';
import { OpenConnections } from '../../apps/api/src/defence/open-connections';
import { writePiece } from '../../apps/api/src/http/list.interceptor';
import { until } from '../support/until';

const stalledMs = 300;
/** Longer than the pauses of a slow reader, on a busy machine too. */
const patientMs = 5_000;

describe(OpenConnections.name, () => {
  let server: Server;
  let connections: OpenConnections;
  let sockets: Socket[] = [];
  const agent = new Agent({ keepAlive: true });

  const serve = async (most: number, answer: RequestListener, patience = stalledMs): Promise<void> => {
    server = createServer((request, response) =>
      connections.oneAtATime(request, response, () => void answer(request, response)),
    );
    server.keepAliveTimeout = 60_000;
    connections = new OpenConnections(server, most, patience);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  };
  const port = (): number => (server.address() as AddressInfo).port;
  const open = async (): Promise<Socket> => {
    const socket = connect(port(), '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (): Promise<IncomingMessage> => {
    const sent = get({ port: port(), host: '127.0.0.1', agent });
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    reply.resume();
    await once(reply, 'end');
    return reply;
  };

  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    sockets = [];
    agent.destroy();
    server.closeAllConnections();
    server.close();
  });

  it('has a place for who asks, however many ask for nothing, and keeps those that have asked longer', async () => {
    await serve(40, (_, response) => response.end('here'));
    expect((await ask()).statusCode).toBe(200);
    for (let n = 0; n < 200; n++) await open();
    await until(async () => sockets.filter(({ closed }) => closed).length >= 160, 'the oldest are closed');
    expect(connections.size).toBeLessThanOrEqual(40);
    const again = get({ port: port(), host: '127.0.0.1', agent });
    const [reply] = (await once(again, 'response')) as [IncomingMessage];
    expect([reply.statusCode, again.reusedSocket]).toEqual([200, true]);
    const [newcomer] = (await once(get({ port: port(), host: '127.0.0.1' }), 'response')) as [IncomingMessage];
    expect(newcomer.statusCode).toBe(200);
  });

  it('holds no more than some thousand requests that wait, however many connections they come on', async () => {
    await serve(40, (request, response) => void (request.url === '/now' && response.end('here')), patientMs);
    const [each, flooding] = [1_400, 10];
    for (let n = 0; n < flooding; n++) (await open()).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(each));
    const closed = (): number => sockets.filter((socket) => socket.closed).length;
    await until(async () => closed() > flooding / 2, 'most of them are closed');
    expect(connections.answering).toBeLessThanOrEqual(4_000 + flooding);
    expect(closed()).toBeLessThan(flooding);
    const [newcomer] = (await once(get({ port: port(), host: '127.0.0.1', path: '/now' }), 'response')) as [
      IncomingMessage,
    ];
    expect(newcomer.statusCode).toBe(200);
  });

  it('gives up an answer of which nobody takes anything, and no other', async () => {
    const answer = Buffer.alloc(32 * 2 ** 20, 'a');
    await serve(40, (_, response) => response.end(answer), patientMs);
    const [idle, slow] = [await open(), await open()];
    let bytes = 0;
    slow.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      slow.pause();
      setTimeout(() => slow.resume(), 5);
    });
    for (const socket of [idle, slow]) socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(async () => bytes > answer.length, 'the slow one has it all');
    // A client that reads nothing notices the end when it begins to read.
    slow.destroy();
    await until(async () => connections.size === 0, 'the one that reads nothing is closed');
  });

  it('gives up an answer that is written piece by piece as well, and its writer learns of it', async () => {
    let wasTaken: Promise<boolean> | undefined;
    const piece = 'x'.repeat(1_000_000);
    const write = async (response: ServerResponse): Promise<boolean> => {
      for (let isTaken = true; isTaken;) isTaken = await writePiece(response as Response, piece);
      return !response.destroyed;
    };
    await serve(40, (_, response) => void (wasTaken = write(response)));
    (await open()).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(async () => wasTaken !== undefined, 'the answer has begun');
    expect(await wasTaken).toBe(false);
    await until(async () => connections.size === 0, 'its connection is closed');
  });

  it('begins the waiting requests of many connections one in a round of the event loop, with others in between', async () => {
    let [round, isDone] = [0, false];
    const count = (): void => {
      round++;
      if (!isDone) setImmediate(count);
    };
    const begun: number[] = [];
    await serve(40, ({ url }, response) => {
      if (url === '/waits') begun.push(round);
      response.end('x'.repeat(100));
    });
    const [each, lines] = [20, 30];
    for (let n = 0; n < lines; n++)
      (await open()).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n' + 'GET /waits HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(each));
    count();
    await until(async () => begun.length === each * lines, 'all are begun');
    isDone = true;
    const inRound = new Map<number, number>();
    for (const at of begun) inRound.set(at, (inRound.get(at) ?? 0) + 1);
    // Those of round 0 began before the count.
    expect(Math.max(...[...inRound].filter(([at]) => at > 0).map(([, number]) => number))).toBeLessThanOrEqual(2);
  });

  it('leaves alone who waits for an answer', async () => {
    await serve(40, (_, response) => void delay(4 * stalledMs).then(() => response.end('late')));
    expect((await ask()).statusCode).toBe(200);
  });
});
