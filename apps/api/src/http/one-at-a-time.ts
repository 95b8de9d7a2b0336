import type { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';

/** Requests of one connection that may wait before no more is read from it; what was read at once may make it some hundred more. */
const mostWaiting = 4;

/** Of each connection on which a request is being answered, what begins those that came after it. */
const lines = new WeakMap<Socket, (() => void)[]>();

/**
 * Middleware, before all others: requests that come on one connection without waiting for answers (HTTP pipelining) are begun one after
 * another, between which everybody else's are served. Node would begin thousands at the same moment, and one that waits behind
 * another's answer would never learn that its connection has closed.
 */
export function oneAtATime(request: Request, response: Response, next: NextFunction): void {
  const { socket } = request;
  const line = lines.get(socket);
  const begin = (): void => {
    response.once('close', () => setImmediate(beginNext, socket));
    next();
  };
  if (!line) {
    lines.set(socket, []);
    begin();
  } else {
    line.push(begin);
    if (line.length >= mostWaiting) socket.pause();
  }
}

function beginNext(socket: Socket): void {
  const line = lines.get(socket);
  const begin = socket.destroyed ? undefined : line?.shift();
  if (!line || !begin) {
    lines.delete(socket);
    return;
  }
  if (line.length < mostWaiting && socket.isPaused()) socket.resume();
  begin();
}
