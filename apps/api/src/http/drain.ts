import { setTimeout as delay } from 'node:timers/promises';
import { JsonLogger } from '@app/observability';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import type { OpenConnections } from '../defence/open-connections';

/**
 * How long keep-alive connections are still served after the last one was accepted: a request may be in transit on any.
 */
const graceMs = 1_500;
/** Requests that have not ended by then are cut off. */
const deadlineMs = 20_000;
const pollMs = 50;

/**
 * Ends the process without losing a request: accepts no new connection, answers requests on open ones and asks their
 * clients to close them, then waits for open responses.
 */
@Injectable()
export class Drain implements BeforeApplicationShutdown {
  isDraining = false;
  private server?: OpenConnections;
  private readonly enders: (() => unknown)[] = [];

  constructor(private readonly logger: JsonLogger) {}

  /** Called once, before the server listens. */
  of(server: OpenConnections): void {
    this.server = server;
  }

  /** Registers a callback for the start of the drain, for work that does not end by itself; its promise is awaited. */
  onBegin(end: () => unknown): void {
    this.enders.push(end);
  }

  /** @param signal that ends the process; without one there are no clients to wait for, only open responses. */
  async beforeApplicationShutdown(signal?: string): Promise<void> {
    this.isDraining = true;
    const startedAt = performance.now();
    let isEnded = false;
    void Promise.allSettled(this.enders.map((end) => end())).then(() => (isEnded = true));
    this.server?.refuseNew();
    if (signal) await delay(graceMs);
    const answering = (): number => this.server?.answering ?? 0;
    while ((answering() > 0 || !isEnded) && performance.now() - startedAt < deadlineMs) await delay(pollMs);
    const ms = Math.round(performance.now() - startedAt);
    if (answering() > 0) this.logger.warn('requests were cut off', { requests: answering(), ms });
    else if (signal) this.logger.log('every request was answered', { ms });
    this.server?.closeAll();
  }
}
