import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A fault of the response to one file, or to the `listing`. */
export interface Fault {
  /** Without a body. */
  status?: number;
  headers?: Record<string, string>;
  /** Breaks the connection after so many bytes of the body. */
  dropAfter?: number;
  /** Stalls after so many bytes of the body, with the connection open. */
  stallAfter?: number;
  /** Answers 200 with the whole file to any range. */
  ignoreRange?: boolean;
  /** Flips a bit of the first byte. */
  corrupt?: boolean;
  /** The whole file's content. */
  content?: Buffer;
}

/** A request as the server saw it. */
export interface SeenRequest {
  host: 'hub' | 'store';
  /** Its path in the repository, or `listing`. */
  file: string;
  headers: IncomingHttpHeaders;
}

interface StoredFile {
  content: Buffer;
  large: boolean;
  /** Listed instead of the real one. */
  size?: number;
}

/**
 * A local hub with the API that `models add` uses: listings, small files from the hub itself, and large ones by a
 * redirect to a second host, as on the real one. Emits `stalled` with a file's name after a stalling response's bytes.
 */
export class HubServer extends EventEmitter {
  readonly requests: SeenRequest[] = [];
  readonly commit = 'c0ffee'.padEnd(40, '0');
  /** Of the repository's page. */
  cardData: object | undefined;
  private readonly files = new Map<string, StoredFile>();
  private readonly faults = new Map<string, { fault: Fault; times: number }[]>();
  private readonly hub: Server;
  private readonly store: Server;

  private constructor(readonly repository: string) {
    super();
    this.hub = createServer((request, response) => this.answerHub(request, response));
    this.store = createServer((request, response) => this.answerStore(request, response));
  }

  static async start(repository = 'someone/tiny'): Promise<HubServer> {
    const server = new HubServer(repository);
    for (const part of [server.hub, server.store]) {
      part.listen(0, '127.0.0.1');
      await once(part, 'listening');
    }
    return server;
  }

  get url(): string {
    return urlOf(this.hub);
  }

  get storeUrl(): string {
    return urlOf(this.store);
  }

  /** Large-file storage gets binary files. */
  publish(path: string, content: Buffer | string, listedSize?: number): void {
    const large = !/\.(json|txt|md)$/.test(path);
    this.files.set(path, {
      content: Buffer.from(content),
      large,
      ...(listedSize !== undefined && { size: listedSize }),
    });
  }

  publishFolder(folder: string): void {
    for (const path of readdirSync(folder, { recursive: true }) as string[])
      if (statSync(join(folder, path)).isFile()) this.publish(path, readFileSync(join(folder, path)));
  }

  remove(path: string): void {
    this.files.delete(path);
  }

  content(path: string): Buffer {
    return this.files.get(path)!.content;
  }

  /** The next `times` requests for this file fail so, after failures requested before. */
  fail(file: string, fault: Fault, times = 1): void {
    this.faults.set(file, [...(this.faults.get(file) ?? []), { fault, times }]);
  }

  /** For a file's bytes, or for the listing. */
  requestsFor(file: string): SeenRequest[] {
    const host = this.files.get(file)?.large ? 'store' : 'hub';
    return this.requests.filter((request) => request.file === file && request.host === host);
  }

  async close(): Promise<void> {
    for (const server of [this.hub, this.store]) {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  }

  private answerHub(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(new URL(request.url!, this.url).pathname);
    const listing = `/api/models/${this.repository}/revision/`;
    const resolve = `/${this.repository}/resolve/${this.commit}/`;
    if (path.startsWith(listing)) {
      this.requests.push({ host: 'hub', file: 'listing', headers: request.headers });
      const known = ['main', 'onnx', 'refs/pr/1', this.commit].includes(path.slice(listing.length));
      if (known) this.send(request, response, 'listing', Buffer.from(JSON.stringify(this.listing())));
      else response.writeHead(404, { 'x-error-code': 'RevisionNotFound' }).end();
      return;
    }
    const name = path.startsWith(resolve) ? path.slice(resolve.length) : '';
    const file = this.files.get(name);
    this.requests.push({ host: 'hub', file: name, headers: request.headers });
    if (!file) response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
    else if (file.large)
      response.writeHead(302, { location: `${this.storeUrl}/${sha256(file.content)}?key=signed` }).end();
    else this.send(request, response, name, file.content);
  }

  private answerStore(request: IncomingMessage, response: ServerResponse): void {
    const digest = new URL(request.url!, this.storeUrl).pathname.slice(1);
    const [name, file] = [...this.files].find(([, { content }]) => sha256(content) === digest) ?? [];
    this.requests.push({ host: 'store', file: name ?? '', headers: request.headers });
    if (name && file) this.send(request, response, name, file.content);
    else response.writeHead(404).end();
  }

  private send(request: IncomingMessage, response: ServerResponse, name: string, content: Buffer): void {
    const fault = this.nextFault(name);
    if (fault.status !== undefined && fault.status !== 206) {
      response.writeHead(fault.status, fault.headers).end();
      return;
    }
    const whole = fault.content ?? content;
    const etag = fault.headers?.etag ?? `"${sha256(content)}"`;
    const asked = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const guard = request.headers['if-range'];
    const ranged = asked && !fault.ignoreRange && (guard === undefined || guard === etag || fault.status === 206);
    const begin = ranged ? Number(asked[1]) : 0;
    const body = Buffer.from(whole.subarray(begin));
    if (fault.corrupt) body[0] ^= 1;
    response.writeHead(ranged ? 206 : 200, {
      etag,
      'content-length': body.length,
      ...(ranged && { 'content-range': `bytes ${begin}-${whole.length - 1}/${whole.length}` }),
      ...fault.headers,
    });
    const stop = fault.dropAfter ?? fault.stallAfter;
    if (stop === undefined) response.end(body);
    else
      response.write(body.subarray(0, stop), () => {
        if (fault.dropAfter !== undefined) response.destroy();
        else this.emit('stalled', name);
      });
  }

  private nextFault(name: string): Fault {
    const [next, ...rest] = this.faults.get(name) ?? [];
    if (!next) return {};
    if (--next.times === 0) this.faults.set(name, rest);
    return next.fault;
  }

  private listing(): unknown {
    const siblings = [...this.files].map(([rfilename, { content, large, size = content.length }]) => {
      const blobId = createHash('sha1').update(`blob ${size}\0`).update(content).digest('hex');
      return { rfilename, size, blobId, ...(large && { lfs: { sha256: sha256(content), size, pointerSize: 134 } }) };
    });
    return { id: this.repository, sha: this.commit, siblings, cardData: this.cardData };
  }
}

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
