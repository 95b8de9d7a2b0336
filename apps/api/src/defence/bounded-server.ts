// Attack: connections that send headers for ever, or bytes that are no HTTP, until no descriptor is left.
import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { readFileSync } from 'node:fs';
import { problemType } from '@app/domain';
import { keepAliveMs } from '@app/process';
import { ExpressAdapter } from '@nestjs/platform-express';
import { BoundedMessage, tooManyChunks } from './bounded-message';
import { OpenConnections } from './open-connections';

/** Codes of Node's parser for a header that is too large, and for the time limit of headers. */
const statusOf: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };
const detailOf: Readonly<Record<number, string>> = {
  400: 'The request cannot be read: its request line, a header or the length of its body is not valid HTTP.',
  408: 'The headers did not come in time.',
  417: 'The header Expect may only be "100-continue".',
  431: 'The headers are too large.',
};

/**
 * Connections on which a request was refused here: what comes after it is not carried out, because
 * nobody would get its answer.
 */
const refused = new WeakSet<Duplex>();

/**
 * Answers what is no HTTP request, or asks for what the service is not, with problem+json, as every other error is
 * answered. Node alone would send no body. It writes to no connection on which another answer is open.
 */
function answerUnreadable(server: Server, problemOf: ProblemOf): void {
  // Answers that are not sent yet, by connection; one that is sent is forgotten, though its connection stays open.
  const answers = new WeakMap<Duplex, Set<ServerResponse>>();
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const open = answers.get(socket) ?? new Set();
    answers.set(socket, open.add(response));
    response.once('close', () => open.delete(response));
  });
  const end = (socket: Duplex, blocks: (response: ServerResponse) => boolean, reply: string): void => {
    if (!socket.writable || [...(answers.get(socket) ?? [])].some(blocks)) socket.destroy();
    else socket.end(reply, () => socket.destroy());
  };
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    // A request whose body is broken gets the answer itself.
    else
      end(
        socket,
        ({ headersSent, req }) => headersSent || req.complete,
        replyOf(
          error.code === tooManyChunks
            ? problemOf(400, 'The body comes in too many small chunks: send it in larger ones.')
            : problemOf(statusOf[error.code ?? ''] ?? 400),
        ),
      );
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    refuse(request, response, problemOf(417)),
  );
  server.on('connect', (_: IncomingMessage, socket: Duplex) => {
    // Node listens to it no more.
    socket.on('error', () => undefined);
    end(socket, () => true, replyOf(problemOf(400, 'The service is no proxy.')));
  });
}

/**
 * Hands on all requests but those of HTTP/1.1 without a host, those for no path, and those behind a refused one. What
 * stands before the path in a request for a proxy is left out: nobody after this needs it, or could read all of it.
 */
function readable(listener: RequestListener, problemOf: ProblemOf): RequestListener {
  return (request, response) => {
    if (refused.has(request.socket)) return;
    const path = pathOf(request.url ?? '');
    if (request.headers.host === undefined && request.httpVersion === '1.1')
      refuse(request, response, problemOf(400, 'The request has no header Host.'));
    else if (path === undefined)
      refuse(request, response, problemOf(400, 'The target of the request is no path and no URL.'));
    else {
      request.url = path;
      listener(request, response);
    }
  };
}

/** The path and query of a request's target, which may be an asterisk; undefined where it has none. */
function pathOf(target: string): string | undefined {
  if (target.startsWith('/') || target === '*') return target;
  const url = URL.parse(target);
  return url && /^https?:$/.test(url.protocol) ? url.pathname + url.search : undefined;
}

/** Answers in its turn, after the requests before it on the connection, which is then closed. */
function refuse({ socket }: IncomingMessage, response: ServerResponse, { status, headers, body }: Refusal): void {
  refused.add(socket);
  response.writeHead(status, headers).end(body);
}

interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: string;
}

type ProblemOf = (status: number, detail?: string) => Refusal;

const problemsAt =
  (publicUrl: string): ProblemOf =>
  (status, detail = detailOf[status]) => {
    const id = randomUUID();
    const code = 'BadRequest';
    const title = STATUS_CODES[status]!;
    const body = JSON.stringify({ type: problemType(publicUrl, code), title, status, detail, instance: id, code });
    const headers = {
      'Content-Type': 'application/problem+json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Request-Id': id,
      Connection: 'close',
    };
    return { status, headers, body };
  };

/** As it goes onto a connection that has no request. */
function replyOf({ status, headers, body }: Refusal): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

/** A request's headers are a few kB; a slower sender would only hold a connection. */
const headersTimeoutMs = 15_000;
/** How often the server checks for such connections. */
const checkMs = 5_000;

/** Express, on a server with bounds on what its connections may hold and for how long. */
export class BoundedAdapter extends ExpressAdapter {
  /** There is one as soon as the application is made. */
  connections: OpenConnections;

  /** @param publicUrl address of the service as callers see it */
  constructor(private readonly publicUrl: string) {
    super();
  }

  /**
   * Node's own clock for a whole request would cut off an honest upload of an hour: bodies have their own, one of JSON
   * for the whole of it and an upload for its progress.
   */
  override initHttpServer(): void {
    const answer = this.getInstance<RequestListener>();
    const problemOf = problemsAt(this.publicUrl);
    const server = createServer(
      {
        headersTimeout: headersTimeoutMs,
        keepAliveTimeout: keepAliveMs,
        requestTimeout: 0,
        connectionsCheckingInterval: checkMs,
        IncomingMessage: BoundedMessage,
        // Node would answer without a body; `readable` answers with a problem.
        requireHostHeader: false,
      },
      // Express would cost more than all else for each of thousands of requests that only wait.
      readable(
        (request, response) => this.connections.oneAtATime(request, response, () => void answer(request, response)),
        problemOf,
      ),
    );
    // A sender with `Expect: 100-continue` gets its answer when the body is going to be read, see `sendContinue`.
    server.on('checkContinue', (request, response) => server.emit('request', request, response));
    answerUnreadable(server, problemOf);
    this.connections = new OpenConnections(server, maxConnections());
    this.setHttpServer(server);
  }
}

/**
 * Half of the process's file descriptors; the others are for files, pictures and the database. A connection without a
 * descriptor could get no response at all.
 */
function maxConnections(): number {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(systemLimits()) ?? [];
  return limit === undefined ? Infinity : Math.floor(Number(limit) / 2);
}

/** Only Linux reports them. */
function systemLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
