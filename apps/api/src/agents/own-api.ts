import type { Socket } from 'node:net';
import { pictureParameter } from '@app/domain';

/** What a route answered with a refusal, in its own sentence. */
export class RefusedError extends Error {}

interface Problem {
  code?: string;
  detail?: string;
  errors?: { pointer: string; message: string }[];
}

/** An event of a stream. */
export interface ServerEvent {
  event: string;
  data: unknown;
}

/**
 * The routes of this service, asked with a caller's key over the address that the caller's own request came to: so what
 * an agent does has the rules, limits, order and sentences of everything else.
 */
export class OwnApi {
  private readonly base: string;

  constructor(
    { localAddress = '127.0.0.1', localPort }: Pick<Socket, 'localAddress' | 'localPort'>,
    private readonly authorization: string,
  ) {
    this.base = `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
  }

  /** @throws RefusedError */
  async json<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    const sent = body && { type: 'application/json', body: JSON.stringify(body) };
    const answer = await this.fetch(method, path, { ...sent, signal });
    return (await answer.json()) as T;
  }

  /** The record of a file that is sent. @throws RefusedError */
  async send<T>(path: string, file: Uint8Array<ArrayBuffer>): Promise<T> {
    const answer = await this.fetch('POST', path, { type: 'application/octet-stream', body: file });
    return (await answer.json()) as T;
  }

  /** The events of a record until its stream ends. @throws RefusedError */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const answer = await this.fetch('GET', path, { signal });
    let text = '';
    for await (const bytes of answer.body!.pipeThrough(new TextDecoderStream())) {
      const frames = (text + bytes).split('\n\n');
      text = frames.pop()!;
      for (const frame of frames) {
        const [, event] = /^event: (.*)$/m.exec(frame) ?? [];
        const [, data] = /^data: (.*)$/m.exec(frame) ?? [];
        if (event !== undefined && data !== undefined) yield { event, data: JSON.parse(data) };
      }
    }
  }

  /** A picture by its public address, or by one of the store, which names it in a parameter. @throws RefusedError */
  async picture(url: string, signal: AbortSignal): Promise<{ file: Buffer; type: string }> {
    const { pathname, searchParams } = new URL(url);
    const name = searchParams.get(pictureParameter) ?? pathname.slice(pathname.lastIndexOf('/') + 1);
    const answer = await this.fetch('GET', `/images/${name}`, { signal });
    return { file: Buffer.from(await answer.arrayBuffer()), type: answer.headers.get('content-type')! };
  }

  private async fetch(
    method: string,
    path: string,
    { type, body, signal }: { type?: string | undefined; body?: RequestInit['body']; signal?: AbortSignal | undefined },
  ): Promise<Response> {
    const answer = await fetch(this.base + path, {
      method,
      headers: { authorization: this.authorization, ...(type && { 'content-type': type }) },
      ...(body != null && { body }),
      ...(signal && { signal }),
    });
    if (answer.ok) return answer;
    const problem = (await answer.json().catch(() => ({}))) as Problem;
    throw new RefusedError(sentenceOf(problem) ?? `The service answered ${answer.status}.`);
  }
}

/** All faults of a body, of which the detail tells the first; of another refusal its own sentence. */
function sentenceOf({ code, detail, errors = [] }: Problem): string | undefined {
  if (code !== 'ValidationFailed' || errors.length === 0) return detail;
  return `${errors.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`.trim()).join('; ')}.`;
}
