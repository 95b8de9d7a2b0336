import type { IncomingMessage } from 'node:http';

/**
 * After an early response a sender may continue for this long and with this many bytes, so that it receives the
 * response and not a connection reset.
 */
const lingerMs = 5_000;
const lingerBytes = 64 * 2 ** 20;

/**
 * Takes in what is left of a body when the answer has been sent: one that nobody reads keeps a connection for no
 * longer than `lingerMs`.
 */
export function discardRest(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  // After an answer with `Connection: close` Node destroys a socket as soon as all is written to it (`destroySoon`).
  // With bytes unread, the other side would see a reset before the answer.
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is not called, only found again among the listeners.
  socket.off('finish', socket.destroy);
  const most = socket.bytesRead + lingerBytes;
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // Errors of an aborted request no longer matter.
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
