import type { IncomingMessage } from 'node:http';

/** Who is answered before the body has come may go on sending so long and so much, so that the answer arrives and not a broken connection. */
const lingerMs = 5_000;
const lingerBytes = 64 * 2 ** 20;

/** Takes in what is left of a body when the answer has been sent: one that nobody reads keeps a connection for no longer than `lingerMs`. */
export function discardRest(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  // After an answer with `Connection: close` Node destroys a socket as soon as all is written to it (`destroySoon`). With bytes unread, the
  // other side would see a reset before the answer.
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is not called, only found again among the listeners.
  socket.off('finish', socket.destroy);
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
