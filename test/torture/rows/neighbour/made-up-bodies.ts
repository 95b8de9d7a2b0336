import { connect } from 'node:net';
import type { Random } from './shapes';

/** One request as it goes over the wire. */
export interface RawShape {
  name: string;
  wire: Buffer;
}

const boundary = 'darkroom';
/** Just below the limit of a JSON body. */
const maxBytes = 900_000;
const patienceMs = 120_000;

/** What a body has between its chunks' frames. */
const contents: [type: string, path: string, make: (bytes: number, random: Random) => string][] = [
  ['application/json', '/v1/sd/text-to-image', (bytes) => `{"prompt":"${'x'.repeat(bytes)}"}`],
  ['application/json', '/v1/finetunes', (bytes) => `{"name":"x","metadata":[${'1,'.repeat(bytes / 2)}1]}`],
  ['application/json', '/mcp', (bytes) => ' '.repeat(bytes)],
  [form(), '/v1/images/edits', (bytes) => `${'-'.repeat(bytes)}\r\n--${boundary}--\r\n`],
  [form(), '/v1/images/edits', (bytes) => `\r\n--${boundary.slice(1)}`.repeat(bytes / 12)],
  [form(), '/v1/images/edits', (bytes, random) => fields(bytes, random.magnitude(1, 2_000))],
  ['image/png', '/v1/uploads', (bytes) => `\x89PNG\r\n\x1a\n${'x'.repeat(bytes)}`],
  ['application/octet-stream', `/v1/finetunes/${'A'.repeat(24)}/weights`, (bytes) => 'x'.repeat(bytes)],
];

function form(): string {
  return `multipart/form-data; boundary=${boundary}`;
}

function fields(bytes: number, length: number): string {
  const part = (index: number): string =>
    `--${boundary}\r\nContent-Disposition: form-data; name="f${index}"\r\n\r\n${'x'.repeat(length)}\r\n`;
  return `${Array.from({ length: bytes / (length + 70) }, (_, i) => part(i)).join('')}--${boundary}--\r\n`;
}

const targets = [
  'http://[::1',
  'http://x:99999/',
  'HTTP://\xff/v1/models',
  '//',
  '*',
  '/%',
  '/v1/sd/text-to-image/%00',
  '/v1/models?\xe4=1',
  `/v1/models?${'a=&'.repeat(3_000)}`,
  `/${'../'.repeat(2_000)}`,
  'x',
];

/** Any request of which the body, its frames, its headers or its target are made up. */
export function rawShape(random: Random, index: number, token: string): RawShape {
  const isOddTarget = index % 4 === 3;
  const [type, usual, make] = random.pick(contents);
  const path = isOddTarget ? random.pick(targets) : usual;
  const content = Buffer.from(make(random.magnitude(10_000, maxBytes), random), 'latin1');
  const size = random.pick([1, 1, 2, random.magnitude(1, 256)]);
  const extension = random.next() < 0.2 ? `;${'e'.repeat(random.magnitude(1, 200))}` : '';
  const headers = [
    'host: darkroom',
    `content-type: ${type}`,
    'transfer-encoding: chunked',
    ...(random.next() < 0.8 ? [`authorization: Bearer ${token}`] : []),
    ...(random.next() < 0.3 ? [`idempotency-key: ${'k'.repeat(random.magnitude(1, 200))}`] : []),
    ...(random.next() < 0.1 ? ['expect: 100-continue'] : []),
    ...(random.next() < 0.1 ? Array.from({ length: 150 }, (_, i) => `x-${i}: y`) : []),
  ];
  const method = usual.endsWith('/weights') ? 'PUT' : 'POST';
  const wire = [`${method} ${path} HTTP/1.1`, ...headers, '', ''].join('\r\n');
  const name = `${content.length} bytes of ${type} in chunks of ${size} to ${path.slice(0, 40)}`;
  return { name, wire: Buffer.concat([Buffer.from(wire, 'latin1'), inChunks(content, size, extension)]) };
}

function inChunks(content: Buffer, size: number, extension: string): Buffer {
  const pieces: Buffer[] = [];
  const frame = Buffer.from(`${size.toString(16)}${extension}\r\n`);
  const end = Buffer.from('\r\n');
  for (let at = 0; at + size <= content.length; at += size) pieces.push(frame, content.subarray(at, at + size), end);
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}

/** Sends it, and reads to the end of the answer. @returns its status; 0 where the connection was closed without one */
export function sendRaw(url: string, wire: Buffer): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let status = 0;
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), patienceMs);
    socket.on('data', (data) => {
      // An answer keeps the connection open: what comes after its head does not matter.
      const [, found] = /^HTTP\/1\.1 ([2-5]\d\d)/.exec(data.toString('latin1')) ?? [];
      status ||= Number(found ?? 0);
      if (status > 0) socket.end();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => error.code === undefined && reject(error));
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(status);
    });
    socket.write(wire);
  });
}
