// Attack: connections that send headers without end, or bytes that are no HTTP, until no descriptor is left.
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

/** Codes of Node's parser for too large a header, and for the time limit of headers. */
const statusOf: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };
const detailOf: Readonly<Record<number, string>> = {
  400: 'The request cannot be read: its request line, a header or the length of its body is not valid HTTP.',
  408: 'The headers did not come in time.',
  417: 'The header Expect may only be "100-continue".',
  431: 'The headers are too large.',
};

/**
 * Connections on which a request was refused here: later requests on them are not carried out, because nobody would get
 * their answer.
 */
const refused = new WeakSet<Duplex>();

/**
 * Answers what is no HTTP request, or asks for another service, with problem+json like every other error. Node alone
 * would send no body. It writes to no connection on which another answer is open.
 */
function answerUnreadable(server: Server, problemOf: ProblemOf): void {
  // Unsent answers by connection. A sent one is forgotten, though its connection stays open.
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
    // An open request with a broken body gets this answer.
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
    // Node no longer listens to it.
    socket.on('error', () => undefined);
    end(socket, () => true, replyOf(problemOf(400, 'The service is no proxy.')));
  });
}

/**
 * Passes on all requests but those of HTTP/1.1 without a host, those without a path, and those behind a refused one.
 * The scheme and host in a request for a proxy are cut off: nobody after this needs them, or could read all of them.
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

/** The path and query of a request's target; undefined for a target without a path, such as an asterisk. */
function pathOf(target: string): string | undefined {
  if (target.startsWith('/') || target === '*') return target;
  const url = URL.parse(target);
  return url && /^https?:$/.test(url.protocol) ? url.pathname + url.search : undefined;
}

/** Answers after the earlier requests of the connection, which is then closed. */
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

/** The bytes for a connection that has no request. */
function replyOf({ status, headers, body }: Refusal): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

/** A request's headers are a few kB; a slower sender would only hold a connection. */
const headersTimeoutMs = 15_000;
/** Interval of the server's checks for such connections. */
const checkMs = 5_000;

/** Express, on a server with bounds on what its connections may hold and for how long. */
export class BoundedAdapter extends ExpressAdapter {
  /** Set as soon as the application is made. */
  connections: OpenConnections;

  /** @param publicUrl address of the service as callers see it */
  constructor(private readonly publicUrl: string) {
    super();
  }

  /**
   * Node's own clock for a whole request would cut off an honest upload of an hour: a JSON body has a time limit of its
   * own, and an upload one for its progress.
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
      // For thousands of requests that only wait, Express would cost more than all else.
      readable(
        (request, response) => this.connections.oneAtATime(request, response, () => void answer(request, response)),
        problemOf,
      ),
    );
    // A sender with `Expect: 100-continue` is answered when its body is read, see `sendContinue`.
    server.on('checkContinue', (request, response) => server.emit('request', request, response));
    answerUnreadable(server, problemOf);
    this.connections = new OpenConnections(server, maxConnections());
    this.setHttpServer(server);
  }
}

/**
 * Half of the process's file descriptors; the rest is for files, pictures and the database. Without a descriptor a
 * connection could not be answered at all.
 */
function maxConnections(): number {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(systemLimits()) ?? [];
  return limit === undefined ? Infinity : Math.floor(Number(limit) / 2);
}

/** Empty except on Linux. */
function systemLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
