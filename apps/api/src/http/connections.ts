import { readFileSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import { OpenConnections } from './open-connections';

/** A request's head is a few kB: who takes longer holds a connection for nothing. */
const headersTimeoutMs = 15_000;
/** How often the server looks for such. */
const checkMs = 5_000;
/** A JSON body is at most 1 MB: 30 s are time enough for a line of 300 kbit/s. */
export const bodyTimeoutMs = 30_000;
/** Who is answered before the body has come may go on sending so long and so much, so that the answer arrives and not a broken connection. */
const lingerMs = 5_000;
const lingerBytes = 64 * 2 ** 20;

/**
 * Sets what a server waits for. Node's own clock for a whole request would cut off an honest upload of an hour: bodies have their
 * own, a JSON body `bodyTimeoutMs` and an upload its progress.
 */
export function boundConnections(server: Server): OpenConnections {
  server.headersTimeout = headersTimeoutMs;
  server.requestTimeout = 0;
  // Read when the server begins to listen; Node's types leave it out.
  Object.assign(server, { connectionsCheckingInterval: checkMs });
  // Who asks before sending a body is told to go on when it is going to be read, see `welcomeBody`.
  server.on('checkContinue', (request, response) => server.emit('request', request, response));
  return new OpenConnections(server, mostConnections());
}

/**
 * Half of the process's descriptors: the others are for files, pictures that are read and the database. A connection for which there is no
 * descriptor would leave nobody an answer.
 */
function mostConnections(): number {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(systemLimits()) ?? [];
  return limit === undefined ? Infinity : Math.floor(Number(limit) / 2);
}

/** Linux alone tells them. */
function systemLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/** Tells a sender that asked (`Expect: 100-continue`) that the body is wanted. */
export function welcomeBody(request: Request, response: ServerResponse): void {
  if (/^100-continue$/i.test(request.headers.expect ?? '') && !response.headersSent) response.writeContinue();
}

/** Middleware: no body that nobody reads keeps a connection for longer than `lingerMs` after the answer. */
export function lingeringClose(request: Request, response: Response, next: NextFunction): void {
  const { socket } = request;
  let isDiscarding = false;
  const discardRest = (): void => {
    if (request.complete || socket.destroyed || isDiscarding) return;
    isDiscarding = true;
    discard(request);
  };
  // Called after an answer with `Connection: close`. With bytes unread, the other side would see a reset before the answer.
  socket.destroySoon = () => {
    if (request.complete) return Socket.prototype.destroySoon.call(socket);
    socket.end();
    discardRest();
  };
  response.once('finish', () => {
    // A connection that stays open keeps nothing of what its last request brought.
    Reflect.deleteProperty(socket, 'destroySoon');
    discardRest();
  });
  next();
}

function discard(request: Request): void {
  const { socket } = request;
  const most = socket.bytesRead + lingerBytes;
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // What broke off is of no interest any more.
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
