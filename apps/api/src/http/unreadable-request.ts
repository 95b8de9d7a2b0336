import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Problem } from './problem';

/** What Node's parser calls a header that is too large, and the time limit of headers. */
const statusOf: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };
const detailOf: Readonly<Record<number, string>> = {
  400: 'The request cannot be read: its request line, a header or the length of its body is not valid HTTP.',
  408: 'The headers did not come in time.',
  417: 'The header Expect may only be "100-continue".',
  431: 'The headers are too large.',
  501: 'The service is no proxy.',
};

/** Answers what is no HTTP request, or asks for what the service is not, with problem+json, as every other error is answered. Node alone would send no body. */
export function answerUnreadable(server: Server): void {
  // Answers that are not sent yet, by connection; one that is sent is forgotten, though its connection stays open.
  const answers = new WeakMap<Duplex, Set<ServerResponse>>();
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const open = answers.get(socket) ?? new Set();
    answers.set(socket, open.add(response));
    response.once('close', () => open.delete(response));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const isHalfAnswered = [...(answers.get(socket) ?? [])].some((answer) => answer.headersSent);
    if (!socket.writable || isHalfAnswered || error.code === 'ECONNRESET') socket.destroy();
    else socket.end(problemReply(statusOf[error.code ?? ''] ?? 400), () => socket.destroy());
  });
  server.on('checkExpectation', ({ socket }: IncomingMessage) => socket.end(problemReply(417)));
  server.on('connect', (_: IncomingMessage, socket: Duplex) => socket.end(problemReply(501)));
}

/** Hands on all requests but those of HTTP/1.1 without a host. */
export function withHost(listener: RequestListener): RequestListener {
  return (request, response) => {
    if (request.headers.host === undefined && request.httpVersion === '1.1')
      request.socket.end(problemReply(400, 'The request has no header Host.'));
    else listener(request, response);
  };
}

function problemReply(status: number, detail = detailOf[status]): string {
  const title = STATUS_CODES[status]!;
  const id = randomUUID();
  const [type, code] = ['about:blank', 'BadRequest'];
  const problem: Problem = { type, title, status, detail, instance: id, code };
  const body = JSON.stringify(problem);
  const headers = [
    `HTTP/1.1 ${status} ${title}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${id}`,
    'Connection: close',
  ];
  return `${headers.join('\r\n')}\r\n\r\n${body}`;
}
