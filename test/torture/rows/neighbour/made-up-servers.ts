import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Random } from './shapes';

/** One connection never sends more. */
const mostBytes = 64 * 2 ** 20;
/** What a reader may take of what is no picture: buffers of the system have some of it, too. */
export const takenLimitBytes = 16 * 2 ** 20;

/** Servers of pictures on a loopback address, each at a path of its own. */
export interface MadeUpServers {
  /** Name of each and its URL. */
  all: { name: string; url: string }[];
  /** Most bytes that a server could send on one connection. */
  most: () => { name: string; bytes: number };
  close: () => Promise<void>;
}

type Answer = (socket: Socket) => Promise<void>;
type Maker = (random: Random, picture: Buffer) => [name: string, answer: Answer];

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const head = (status: number, ...headers: string[]): Buffer =>
  latin1([`HTTP/1.1 ${status} X`, ...headers, '', ''].join('\r\n'));
const chunkHead = head(200, 'transfer-encoding: chunked');

/** Writes the same again and again, as fast as it is taken, until the other side has left. */
async function repeat(socket: Socket, piece: Buffer, before: Buffer = Buffer.alloc(0)): Promise<void> {
  const many = Buffer.concat(Array.from({ length: Math.ceil(65_536 / piece.length) }, () => piece));
  socket.write(before);
  while (!socket.destroyed && socket.bytesWritten < mostBytes)
    await new Promise((resolve) => socket.write(many, resolve));
  socket.destroy();
}

const makers: Maker[] = [
  (random) => {
    const status = random.pick([100, 102, 103, 103, 199]);
    return [
      `${status} without end`,
      (socket) => repeat(socket, head(status, `link: ${'x'.repeat(random.integer(0, 99))}`)),
    ];
  },
  (random, picture) => {
    const size = random.integer(1, 8);
    const first = Buffer.concat([chunkHead, latin1(`${picture.length.toString(16)}\r\n`), picture, latin1('\r\n')]);
    return [`chunks of ${size}`, (socket) => repeat(socket, latin1(`${size}\r\n${'x'.repeat(size)}\r\n`), first)];
  },
  (random, picture) => {
    const [size, pauseMs] = [random.integer(1, 20), random.integer(1, 100)];
    const answer: Answer = async (socket) => {
      socket.write(head(200, `content-length: ${picture.length}`));
      for (let at = 0; at < picture.length && !socket.destroyed; at += size) {
        socket.write(picture.subarray(at, at + size));
        await delay(pauseMs);
      }
    };
    return [`${size} bytes each ${pauseMs} ms`, answer];
  },
  (random) => {
    const letters = Array.from({ length: random.magnitude(1, 2_000) }, () =>
      String.fromCharCode(random.integer(128, 255)),
    );
    const place = random.pick(['/', '//', 'http://127.0.0.1:1/', 'http://[', '?']) + letters.join('');
    return [
      'raw bytes in Location',
      async (socket) => void socket.end(head(302, `location: ${place}`, 'content-length: 0')),
    ];
  },
  (random) => {
    const status = random.pick([301, 302, 303, 307, 308]);
    return [
      `${status} in a circle`,
      async (socket) => void socket.end(head(status, 'location: ?', 'content-length: 0')),
    ];
  },
  (random, picture) => {
    const body = gzipSync(Buffer.concat([picture, Buffer.alloc(30e6)]));
    const length = `content-length: ${body.length}`;
    return [
      'gzip',
      async (socket) => void socket.end(Buffer.concat([head(200, 'content-encoding: gzip', length), body])),
    ];
  },
  (random) => {
    const piece = random.pick(['x: y\r\n', ':\r\n', 'x\r\n', `${'x'.repeat(9_000)}\r\n`]);
    return ['headers without end', (socket) => repeat(socket, latin1(piece), latin1('HTTP/1.1 200 OK\r\n'))];
  },
  () => [
    'trailers without end',
    (socket) => repeat(socket, latin1('x: y\r\n'), Buffer.concat([chunkHead, latin1('0\r\n')])),
  ],
  () => [
    'an extension without end',
    (socket) => repeat(socket, latin1('eeee'), Buffer.concat([chunkHead, latin1('1;')])),
  ],
  (random) => [`status ${random.integer(200, 599)}`, async (socket) => void socket.end(head(random.integer(400, 599)))],
];

/** The same random numbers make the same servers. */
export async function madeUpServers(random: Random, count: number, picture: Buffer): Promise<MadeUpServers> {
  const answers = Array.from({ length: count }, (_, i) => makers[i % makers.length](random, picture));
  const sockets = new Set<Socket>();
  let most = { name: 'none', bytes: 0 };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (data) => {
      const [name, answer] = answers[Number(/^GET \/(\d+)/.exec(data.toString('latin1'))?.[1] ?? 0) % count];
      socket.once('close', () => {
        sockets.delete(socket);
        const bytes = socket.bytesWritten;
        if (bytes > most.bytes) most = { name, bytes };
      });
      void answer(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    all: answers.map(([name], i) => ({ name, url: `http://127.0.0.1:${port}/${i}` })),
    most: () => most,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
