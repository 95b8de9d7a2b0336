// Attack: a body in chunks of one byte, each of which costs as much as one of 64 KiB, even if the body is discarded.
import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';

/** A body may always have this many chunks: a client may write its JSON word by word. */
const freeChunks = 4096;
/** Beyond `freeChunks`, the average chunk must have this many bytes; packets of a slow line have twice as many. */
const bytesPerChunk = 256;

/** Code of the error for a body in too many chunks, in the manner of Node's parser. */
export const tooManyChunks = 'DARKROOM_TOO_MANY_CHUNKS';

/** A request whose body is limited in chunks, whether it is read or discarded. */
export class BoundedMessage extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    const push = this.push.bind(this);
    let [chunks, bytes, isRefused] = [0, 0, false];
    // Express replaces a request's prototype, and with it the methods of this class: so they are set on the object.
    // After the answer Node drops unread data without `push`, and so without the limit.
    Object.assign(this, { _dump: () => this.resume() });
    this.push = (chunk: Buffer | null, encoding) => {
      if (chunk === null) return push(chunk, encoding);
      if (isRefused) return false;
      bytes += chunk.length;
      if (++chunks <= freeChunks + bytes / bytesPerChunk) return push(chunk, encoding);
      isRefused = true;
      refuse(socket);
      return false;
    };
  }
}

/** As Node treats what it cannot parse. */
function refuse(socket: Socket): void {
  const { server } = socket as Socket & { server: Server };
  server.emit('clientError', Object.assign(new Error(tooManyChunks), { code: tooManyChunks }), socket);
}
