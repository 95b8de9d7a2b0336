import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request to the receiver. */
export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

type Answer = (request: Received, response: ServerResponse, count: number) => void;

/** A real HTTP server that records requests and lets a test await them. */
export interface Receiver {
  url: string;
  received: Received[];
  /** Resolves with the n-th request (from 1) once it arrives. */
  next: (n: number) => Promise<Received>;
  close: () => Promise<void>;
}

/** @param answer response to each request; 204 by default. */
export async function startReceiver(
  answer: Answer = (_, response) => response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Received[] = [];
  const waiting: { n: number; resolve: (request: Received) => void }[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const entry = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      received.push(entry);
      answer(entry, response, received.length);
      for (const { n, resolve } of waiting) if (received.length >= n) resolve(received[n - 1]);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    next: (n) =>
      received.length >= n ? Promise.resolve(received[n - 1]) : new Promise((resolve) => waiting.push({ n, resolve })),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Starts receivers that are closed at the end of the suite that calls this. */
export function receiversOfSuite(): typeof startReceiver {
  const receivers: Receiver[] = [];
  afterAll(() => Promise.all(receivers.map((receiver) => receiver.close())));
  return async (...answer) => {
    const started = await startReceiver(...answer);
    receivers.push(started);
    return started;
  };
}
