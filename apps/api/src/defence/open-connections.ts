// Attack: thousands of idle connections, readers that take nothing, or pipelined requests that all begin at once.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';

/**
 * After an early response a sender may continue for this long and with this many bytes: it then receives the response
 * and not a connection reset.
 */
const lingerMs = 5_000;
const lingerBytes = 64 * 2 ** 20;

/** Reads and drops the rest of a body after the answer, for at most `lingerMs`. */
export function discardRest(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  // After an answer with `Connection: close` Node destroys a socket as soon as all is written to it (`destroySoon`).
  // With bytes unread, the other side would see a reset before the answer.
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is not called, only found again among the listeners.
  socket.off('finish', socket.destroy);
  const most = socket.bytesRead + lingerBytes;
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // Errors of an aborted request no longer matter.
  request.on('error', () => undefined);
  request.once('end', () => {
    clearTimeout(timer);
    if (socket.writableEnded) socket.destroy();
  });
  request.on('data', () => {
    if (socket.bytesRead > most) socket.destroy();
  });
  request.resume();
}

/** A response of which the client reads nothing for this long is closed. Node itself only notices slow readers. */
export const stallMs = 30_000;
/** Bytes that a reader must take in that time while an answer waits, like the sender of an upload. */
export const minTakenBytes = 64 * 1024;
/**
 * More listeners than Node expects wait for the end of a response: its log line, its turn, its long request, the
 * connection's next request.
 */
const maxListeners = 20;
/** When only this fraction of the connections is left, idle ones are closed. */
const spare = 1 / 8;
/**
 * Pipelined requests of one connection that may wait before reading stops; data that was already read may add some
 * hundred.
 */
const maxWaiting = 4;
/**
 * Pipelined requests that may wait on all connections together, some kilobytes each: one packet may bring a thousand.
 * Beyond this, a connection with more than `maxWaiting` waiting ones is closed.
 */
const maxWaitingInAll = 4_000;

/**
 * The connections of a server. When nearly all are taken, a new one takes the place of the oldest that never had a
 * request, or else of the one whose last request ended first. A connection whose answer nobody reads is closed. The
 * requests of one connection are handled one after another.
 */
export class OpenConnections {
  /** Without a request so far, in order of arrival. */
  private readonly unused = new Set<Socket>();
  /** In the order in which their last request ended. */
  private readonly idle = new Set<Socket>();
  /** By connection that is being answered: the starts of the requests that wait behind the current one. */
  private readonly lines = new Map<Socket, (() => void)[]>();
  /** Connections whose next request may begin: one in each round of the event loop, so that others are served too. */
  private readonly due = new Set<Socket>();
  /** By connection whose reader is behind: the bytes read when it last read enough, and the time. */
  private readonly readers = new Map<Socket, { taken: number; at: number }>();
  private waiting = 0;
  private isEnding = false;

  /** @param most connections of the server. */
  constructor(
    private readonly server: Server,
    private readonly most: number,
    stalledMs = stallMs,
  ) {
    server.maxConnections = most;
    server.timeout = stalledMs;
    server.on('connection', (socket: Socket) => this.open(socket));
    // Before any other listener.
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      if (this.isEnding) response.setHeader('Connection', 'close');
      response.setMaxListeners(maxListeners).once('finish', () => discardRest(request));
    });
    const timer = setInterval(() => this.cutSlowReaders(stalledMs), stalledMs / 4).unref();
    server.once('close', () => clearInterval(timer));
    server.on('timeout', (socket: Socket) => {
      // Waiting for a response and sending a body have time limits of their own.
      if (this.lines.has(socket) && socket.writableLength === 0) socket.setTimeout(stalledMs);
      else socket.destroy();
    });
  }

  get size(): number {
    return this.unused.size + this.idle.size + this.lines.size;
  }

  /** Requests that are being answered, or wait behind another on their connection. */
  get answering(): number {
    return [...this.lines.values()].reduce((sum, line) => sum + 1 + line.length, 0);
  }

  /**
   * Comes before all else: handles the pipelined requests of one connection one after the other, with other connections
   * in between. Node would begin thousands at once, and one that waits for another's response would never notice that
   * its connection has closed.
   */
  readonly oneAtATime = ({ socket }: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const begin = (): void => {
      response.once('close', () => setImmediate(() => this.beginNext(socket)));
      next();
    };
    const line = this.lines.get(socket);
    if (line) {
      if (line.length >= maxWaiting && this.waiting >= maxWaitingInAll) return void socket.destroy();
      line.push(begin);
      this.waiting++;
      if (line.length >= maxWaiting) socket.pause();
      return;
    }
    this.unused.delete(socket);
    this.idle.delete(socket);
    if (!socket.closed) this.lines.set(socket, []);
    begin();
  };

  /** Takes no new connection, and asks the clients of open ones to leave. */
  refuseNew(): void {
    this.isEnding = true;
    // The HTTP server's `close` would also close idle connections with a request in transit.
    if (this.server.listening) NetServer.prototype.close.call(this.server);
  }

  closeAll(): void {
    this.server.closeAllConnections();
  }

  private open(socket: Socket): void {
    if (this.size >= this.most * (1 - spare)) this.makeRoom();
    this.unused.add(socket);
    socket.once('close', () => {
      this.waiting -= this.lines.get(socket)?.length ?? 0;
      for (const each of [this.unused, this.idle, this.lines, this.due, this.readers]) each.delete(socket);
    });
  }

  /** Closes connections whose readers take too little: a few bytes now and then would keep the answer in memory. */
  private cutSlowReaders(stalledMs: number): void {
    const now = performance.now();
    for (const socket of this.lines.keys()) {
      const taken = socket.bytesWritten - socket.writableLength;
      const known = this.readers.get(socket);
      if (socket.writableLength === 0) this.readers.delete(socket);
      else if (!known || taken - known.taken >= minTakenBytes) this.readers.set(socket, { taken, at: now });
      else if (now - known.at >= stalledMs) socket.destroy();
    }
  }

  private makeRoom(): void {
    const [oldest] = this.unused.size > 0 ? this.unused : this.idle;
    if (!oldest) return;
    this.unused.delete(oldest);
    this.idle.delete(oldest);
    oldest.destroy();
  }

  private beginNext(socket: Socket): void {
    const line = this.lines.get(socket);
    if (!line || socket.destroyed) return;
    if (line.length > 0) {
      this.due.add(socket);
      if (this.due.size === 1) setImmediate(this.beginDue);
      return;
    }
    this.lines.delete(socket);
    this.idle.add(socket);
  }

  private readonly beginDue = (): void => {
    const [socket] = this.due;
    if (!socket) return;
    this.due.delete(socket);
    if (this.due.size > 0) setImmediate(this.beginDue);
    const line = this.lines.get(socket)!;
    const begin = line.shift()!;
    this.waiting--;
    if (line.length < maxWaiting && socket.isPaused()) socket.resume();
    begin();
  };
}
