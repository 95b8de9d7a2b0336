import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** An answer of which the reader takes nothing for so long is given up. Node notices slow readers: they take something. */
const stallMs = 30_000;
/** More than Node expects wait for the end of an answer: its log line, its turn, what it has open, the next request of its connection. */
const mostListeners = 20;
/** Where only this part of the connections is left, those that bring no request make room. */
const spare = 1 / 8;

/**
 * The connections of a server. However many are opened by those who ask for nothing, newcomers find a place: the oldest on which no
 * request has ever come goes first, then the one on which the last request has been over for longest. And an answer that nobody
 * reads does not stay in memory.
 */
export class OpenConnections {
  /** In the order in which they came. */
  private readonly unused = new Set<Socket>();
  /** In the order in which their last request was over. */
  private readonly idle = new Set<Socket>();
  /** How many requests are being answered on each. */
  private readonly requests = new Map<Socket, number>();

  /** @param most connections that the server may have. */
  constructor(
    server: Server,
    private readonly most: number,
    stalledMs = stallMs,
  ) {
    server.maxConnections = most;
    server.timeout = stalledMs;
    server.on('connection', (socket: Socket) => this.open(socket));
    server.on('request', (request: IncomingMessage, response: ServerResponse) => this.begin(request.socket, response));
    server.on('timeout', (socket: Socket) => {
      // Whoever waits for an answer, or sends a body, has clocks of its own.
      if (this.requests.has(socket) && socket.writableLength === 0) socket.setTimeout(stalledMs);
      else socket.destroy();
    });
  }

  get size(): number {
    return this.unused.size + this.idle.size + this.requests.size;
  }

  private open(socket: Socket): void {
    if (this.size >= this.most * (1 - spare)) this.makeRoom();
    this.unused.add(socket);
    socket.once('close', () => {
      for (const each of [this.unused, this.idle, this.requests]) each.delete(socket);
    });
  }

  private makeRoom(): void {
    const [oldest] = this.unused.size > 0 ? this.unused : this.idle;
    if (!oldest) return;
    this.unused.delete(oldest);
    this.idle.delete(oldest);
    oldest.destroy();
  }

  private begin(socket: Socket, response: ServerResponse): void {
    if (socket.destroyed) return;
    this.unused.delete(socket);
    this.idle.delete(socket);
    this.requests.set(socket, (this.requests.get(socket) ?? 0) + 1);
    response.setMaxListeners(mostListeners).once('close', () => {
      const left = (this.requests.get(socket) ?? 0) - 1;
      if (left > 0) this.requests.set(socket, left);
      else if (this.requests.delete(socket) && !socket.destroyed) this.idle.add(socket);
    });
  }
}
