import { type Config, CONFIG } from '@app/config';
import { HttpService } from '@nestjs/axios';
import { isLocalName } from '@app/domain';
import { AddressRefusedError, checkedAgents, DnsLookUps, InformationError, readBody } from '@app/remote';
import { Inject, Injectable } from '@nestjs/common';
import { isAxiosError } from 'axios';
import { firstValueFrom } from 'rxjs';
import { Webhook } from 'standardwebhooks';
import type { Readable } from 'node:stream';
import type { ReceiverAnswer } from './receiver-gate';
import { retryAfterMs } from './retry-schedule';

/** Time limit of a receiver's response. */
export const receiverTimeoutMs = 15_000;
/** At most this much of a response's body is read, for at most this long; then the connection is closed. */
const maxReplyBytes = 64 * 1024;
const replyTimeoutMs = 1_000;
/** Characters of a failed response in the log. */
const excerptLength = 200;

/** The outcome of one attempt. */
export interface Receipt {
  statusCode: number | null;
  error: string | null;
  durationMs: number;
  /** Requested by the receiver, in milliseconds. */
  retryAfterMs: number;
  /** For the receiver gate. */
  answer: ReceiverAnswer;
  /** Whether its address was refused, so that nothing was sent. */
  isRefused?: boolean;
  /** Whether every further attempt would fail the same way. */
  isFinal?: boolean;
}

/** A signed message for a receiver. */
export interface WebhookMessage {
  id: string;
  ownerId: string;
  url: string;
  /** Signed and sent byte for byte. */
  body: string;
  /** Each signs, so that a receiver can move from one to the next. */
  secrets: readonly string[];
}

/**
 * Posts one message with Standard Webhooks headers. It never follows a redirect, and after name resolution connects to
 * no private, loopback or link-local address unless the operator allows it.
 */
@Injectable()
export class WebhookSender {
  private readonly lookUps = new DnsLookUps();

  constructor(
    private readonly http: HttpService,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Never throws because of the receiver or the network: the receipt contains the error. */
  async send(message: WebhookMessage): Promise<Receipt> {
    const { ownerId, url, body } = message;
    const started = Date.now();
    const receipt = (
      statusCode: number | null,
      error: string | null,
      answer: ReceiverAnswer,
      header?: unknown,
    ): Receipt => ({
      statusCode,
      error,
      answer,
      durationMs: Date.now() - started,
      retryAfterMs: retryAfterMs(header),
    });
    const signal = AbortSignal.timeout(receiverTimeoutMs);
    let isLookedUp = true;
    const agents = checkedAgents(this.config.webhookAllowPrivate, async (hostname, options) => {
      isLookedUp = false;
      const addresses = await this.lookUps.run(ownerId, hostname, options, signal);
      isLookedUp = true;
      return addresses;
    });
    try {
      const headers = headersOf(message, new Date(started));
      // Named here too: Nest's service ends every other request as soon as its response has begun.
      const config = { ...agents, signal, headers, responseType: 'stream' } as const;
      const response = await firstValueFrom(this.http.post<Readable>(url, Buffer.from(body), config));
      // Only the status decides; the body is read for the log, and so that the receiver can finish its response.
      const reply = await readSome(response.data);
      const ok = response.status >= 200 && response.status < 300;
      return receipt(
        response.status,
        ok ? null : `The receiver answered ${response.status}${reply ? `: ${reply}` : ''}.`,
        response.status < 500 ? 'answered' : 'failed',
        response.headers['retry-after'],
      );
    } catch (error) {
      const failure = receipt(null, reasonOf(error, isLookedUp), answerOf(error, isLookedUp));
      const isRefused = causeOf(error) instanceof AddressRefusedError;
      // Any other name may get another address later.
      return { ...failure, isRefused, isFinal: isRefused && isLocalName(new URL(url).hostname) };
    }
  }
}

/** Each secret signs the id, the second and the body. */
function headersOf({ id, body, secrets }: WebhookMessage, at: Date): Record<string, string> {
  return {
    'Content-Type': 'application/json; charset=utf-8',
    'User-Agent': 'darkroom-webhooks',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
  };
}

/** @returns the beginning of a body as one line of text; an early end is not an error. */
async function readSome(body: Readable): Promise<string> {
  const timer = setTimeout(() => body.destroy(), replyTimeoutMs);
  const kept: Buffer[] = [];
  let bytes = 0;
  try {
    await readBody(body, (chunk) => {
      if (bytes < 4 * excerptLength) kept.push(chunk.subarray(0, 4 * excerptLength));
      bytes += chunk.length;
      if (bytes >= maxReplyBytes) body.destroy();
    });
  } catch {
    // Text that came before an interruption is kept.
  } finally {
    clearTimeout(timer);
    body.destroy();
  }
  const text = Buffer.concat(kept)
    .toString()
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  return text.length > excerptLength ? `${text.slice(0, excerptLength)} …` : text.replace(/\.$/, '');
}

function reasonOf(error: unknown, isLookedUp: boolean): string {
  if (isAxiosError(error) && (error.code === 'ERR_CANCELED' || error.code === 'ECONNABORTED'))
    return isLookedUp
      ? `The receiver did not answer within ${receiverTimeoutMs / 1000} seconds.`
      : `The receiver's name could not be looked up within ${receiverTimeoutMs / 1000} seconds.`;
  const { message, code } = error as NodeJS.ErrnoException;
  const cause = causeOf(error);
  if (cause instanceof AddressRefusedError || cause instanceof InformationError) return cause.message;
  return `The receiver could not be reached: ${code ?? message}.`;
}

function answerOf(error: unknown, isLookedUp: boolean): ReceiverAnswer {
  return isLookedUp && wasContacted(error) ? 'failed' : 'not asked';
}

/** False if it ended before any connection: the name has no address, or a refused one. */
function wasContacted(error: unknown): boolean {
  const cause = causeOf(error);
  return !(cause instanceof AddressRefusedError || (cause as { syscall?: string }).syscall === 'getaddrinfo');
}

function causeOf(error: unknown): unknown {
  return isAxiosError(error) ? (error.cause ?? error) : error;
}
