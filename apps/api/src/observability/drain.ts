import type { Server as HttpServer } from 'node:http';
import { Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { JsonLogger } from '@app/observability';
import type { BeforeApplicationShutdown } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';

/** Connections that clients keep are served for so long after the last one was taken: a request may be under way on any of them. */
const graceMs = 1_500;
/** Requests that have not ended by then are cut off. */
const deadlineMs = 20_000;
const pollMs = 50;

/**
 * Ends the process without losing a request: takes no new connection, answers what comes on those that are open and asks their
 * clients to leave, then waits for what is still being answered.
 */
@Injectable()
export class Drain implements BeforeApplicationShutdown {
  isDraining = false;
  private running = 0;
  private readonly enders: (() => unknown)[] = [];

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly logger: JsonLogger,
  ) {}

  /** Middleware, before all others. */
  observe(_request: Request, response: Response, next: NextFunction): void {
    this.running++;
    response.once('close', () => this.running--);
    if (this.isDraining) response.setHeader('Connection', 'close');
    next();
  }

  /** Calls when the drain begins what ends work that does not end by itself; a promise is waited for. */
  onBegin(end: () => unknown): void {
    this.enders.push(end);
  }

  /** @param signal that ends the process; without one nobody outside is to be waited for, only what is being answered. */
  async beforeApplicationShutdown(signal?: string): Promise<void> {
    this.isDraining = true;
    const server = this.adapterHost.httpAdapter.getHttpServer() as HttpServer;
    const startedAt = performance.now();
    let isEnded = false;
    void Promise.allSettled(this.enders.map((end) => end())).then(() => (isEnded = true));
    // The HTTP server's own way would close the connections that are at rest, whatever is under way on them.
    if (server.listening) Server.prototype.close.call(server);
    if (signal) await delay(graceMs);
    while ((this.running > 0 || !isEnded) && performance.now() - startedAt < deadlineMs) await delay(pollMs);
    const ms = Math.round(performance.now() - startedAt);
    if (this.running > 0) this.logger.warn('requests were cut off', { requests: this.running, ms });
    else if (signal) this.logger.log('every request was answered', { ms });
    server.closeAllConnections();
  }
}
