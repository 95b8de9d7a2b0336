import type { Writable } from 'node:stream';
import { TooManyError } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { RequestTurns } from './request-turns';

/** Kinds of requests that may stay open for long. */
export type LongRequestKind = 'event stream' | 'complete list' | 'waiting answer' | 'upload';

/** Most open requests per kind and key in one api process; uploads have a limit of their own. */
export const longRequestsPerKey: Readonly<Record<LongRequestKind, number>> = {
  'event stream': 100,
  'complete list': 1,
  'waiting answer': 20,
  upload: Infinity,
};

interface LongRequest {
  kind: LongRequestKind;
  end: () => void;
}

/** The long requests of this process: counted per key, and ended when the key is revoked. */
@Injectable()
export class LongRequests {
  private readonly open = new Map<string, Set<LongRequest>>();

  constructor(private readonly turns: RequestTurns) {}

  /**
   * Counts a request as a long one until its answer is closed, and ends its turn: it no longer counts among those that
   * are served at once.
   * @param end what ends it early.
   * @throws TooManyError
   */
  addAndEndTurn(ownerId: string, answer: Writable, kind: LongRequestKind, end: () => void): void {
    this.add(ownerId, answer, kind, end);
    this.turns.end(answer);
  }

  /** The same for a request that has work to do before it only stays open: it keeps its turn until `RequestTurns.end`. */
  add(ownerId: string, answer: Writable, kind: LongRequestKind, end: () => void): void {
    // A request whose caller is already gone would never be removed.
    if (answer.closed) return;
    const own = this.open.get(ownerId) ?? new Set();
    const count = [...own].filter((other) => other.kind === kind).length;
    if (count >= longRequestsPerKey[kind]) throw tooMany(kind);
    const request = { kind, end };
    this.open.set(ownerId, own.add(request));
    answer.once('close', () => {
      own.delete(request);
      if (own.size === 0 && this.open.get(ownerId) === own) this.open.delete(ownerId);
    });
  }

  /** Keys with open requests. */
  owners(): string[] {
    return [...this.open.keys()];
  }

  /** Ends all of one key. @returns how many there were. */
  endAll(ownerId: string): number {
    const own = [...(this.open.get(ownerId) ?? [])];
    for (const { end } of own) end();
    return own.length;
  }
}

function tooMany(kind: LongRequestKind): TooManyError {
  if (kind === 'complete list')
    return new TooManyError(
      'ListRunning',
      'This API key has a complete list running; wait for its end, or ask for pages with ?limit=.',
      2,
    );
  return kind === 'waiting answer'
    ? new TooManyError(
        'TooManyWaiting',
        `This API key may have ${longRequestsPerKey[kind]} requests waiting for pictures.`,
        10,
      )
    : new TooManyError(
        'TooManyEventStreams',
        `This API key may have ${longRequestsPerKey[kind]} event streams open.`,
        10,
      );
}
