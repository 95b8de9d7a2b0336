import { Agent, request } from 'node:http';
import type { Caller, Ledger } from '../../caller';

/** One request as it is sent over the wire. */
export interface RawRequest {
  method: string;
  path: string;
  body?: Buffer;
  headers?: Record<string, string>;
  /** Sent in pieces of 64 kB without a length. */
  chunked?: boolean;
  /** Called with each piece of the response, which is then not kept. */
  onData?: (chunk: Buffer) => void;
  /** How long an answer may take, where that is longer than for most. */
  patienceMs?: number;
}

/** The response; status 0: none. */
export interface RawAnswer {
  status: number;
  bytes: number;
  text: string;
  /** Whether the response was complete. */
  whole: boolean;
  elapsedMs: number;
}

/** Longer than most requests here may take; a hung service must not delay the scenario. */
export const usualPatienceMs = 60_000;
const keptBytes = 64 * 1024;
const pieceBytes = 64 * 1024;

/** The hostile caller: sends prepared bytes, and keeps little of the responses. */
export class FirstKey {
  private readonly agent = new Agent({ maxSockets: 5_000 });

  constructor(
    readonly url: string,
    readonly caller: Caller,
    private readonly ledger: Ledger,
  ) {}

  /** Never throws because of the service or the network. */
  send({ method, path, body, headers, chunked, onData, patienceMs = usualPatienceMs }: RawRequest): Promise<RawAnswer> {
    const startedAt = performance.now();
    return new Promise((resolve) => {
      const answer: RawAnswer = { status: 0, bytes: 0, text: '', whole: false, elapsedMs: 0 };
      const kept: Buffer[] = [];
      const over = (): void => {
        clearTimeout(timer);
        answer.text = Buffer.concat(kept).subarray(0, keptBytes).toString();
        answer.elapsedMs = performance.now() - startedAt;
        if (answer.status === 0 || answer.whole) this.ledger.answered(answer.status, undefined, answer.text);
        resolve(answer);
      };
      const timer = setTimeout(() => sent.destroy(new Error('too late')), patienceMs);
      const sent = request(
        this.url + path,
        {
          method,
          agent: this.agent,
          headers: {
            authorization: `Bearer ${this.caller.token}`,
            ...(body && { 'content-type': 'application/json' }),
            ...(body && !chunked && { 'content-length': String(body.length) }),
            ...headers,
          },
        },
        (response) => {
          answer.status = response.statusCode ?? 0;
          response.on('data', (chunk: Buffer) => {
            answer.bytes += chunk.length;
            if (onData) onData(chunk);
            else if (answer.bytes - chunk.length < keptBytes) kept.push(chunk);
          });
          response.on('close', () => {
            answer.whole = response.complete;
            over();
          });
        },
      );
      sent.on('error', () => answer.status === 0 && over());
      if (body && chunked)
        for (let start = 0; start < body.length; start += pieceBytes)
          sent.write(body.subarray(start, start + pieceBytes));
      sent.end(chunked ? undefined : body);
    });
  }

  /** Sends JSON. */
  post(path: string, body: unknown): Promise<RawAnswer> {
    return this.send({ method: 'POST', path, body: Buffer.from(JSON.stringify(body)) });
  }

  /** Makes a record. @returns its id. */
  async make(path: string, body: unknown): Promise<string> {
    return (JSON.parse((await this.post(path, body)).text) as { id: string }).id;
  }

  /** Sends, and reports a bad response: none, a 5xx, or more bytes than an error may have. */
  async expectRefusal(sent: RawRequest): Promise<string | undefined> {
    return judge(await this.send(sent));
  }
}

/** An error of this size would be an attack on the caller. */
const answerLimitBytes = 64 * 1024;

/** The fault of a response to a hostile request. */
export function judge({ status, bytes, elapsedMs, text }: RawAnswer): string | undefined {
  if (status === 0) return `no answer in ${Math.round(elapsedMs)} ms`;
  if (status >= 500) return `answered ${status}: ${text.slice(0, 200)}`;
  if (bytes > answerLimitBytes) return `an answer of ${bytes} bytes`;
  return undefined;
}

/** A text of meaningless words. */
function plainText(length: number): string {
  return 'lorem ipsum dolor sit amet '.repeat(Math.ceil(length / 27)).slice(0, length);
}

/** A body of `bytes` that is rejected only for the length of its prompt. */
export function plainBody(bytes: number): Buffer {
  const frame = JSON.stringify({ prompt: '', model: 'shapes' }).length;
  return Buffer.from(JSON.stringify({ prompt: plainText(bytes - frame), model: 'shapes' }));
}
