import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:http';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OpenConnections } from './open-connections';
import { answerUnreadable, withHost } from './unreadable-request';

/** A request's headers are a few kB; a slower sender would only hold a connection. */
const headersTimeoutMs = 15_000;
/** How often the server checks for such connections. */
const checkMs = 5_000;

/** Express, on a server with bounds on what its connections may hold and for how long. */
export class BoundedAdapter extends ExpressAdapter {
  /** There is one as soon as the application is made. */
  connections: OpenConnections;

  /**
   * Node's own clock for a whole request would cut off an honest upload of an hour: bodies have their own, one of JSON
   * for the whole of it and an upload for its progress.
   */
  override initHttpServer(): void {
    const server = createServer(
      {
        headersTimeout: headersTimeoutMs,
        requestTimeout: 0,
        connectionsCheckingInterval: checkMs,
        // Node would answer without a body; `withHost` answers with a problem.
        requireHostHeader: false,
      },
      withHost(this.getInstance<RequestListener>()),
    );
    // A sender with `Expect: 100-continue` gets its answer when the body is going to be read, see `sendContinue`.
    server.on('checkContinue', (request, response) => server.emit('request', request, response));
    answerUnreadable(server);
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
