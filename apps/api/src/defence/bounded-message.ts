// Attack: a body in chunks of one byte, each of which costs as much as one of 64 KiB, also where the body is only discarded.
import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';

/** Every body may have this many chunks: a client may write its JSON word by word. */
const freeChunks = 4096;
/** Bytes a chunk, on average, that a body of more chunks must have; packets of a slow line have twice as many. */
const bytesPerChunk = 256;

/** Code of the error of a body in too many chunks, as those of Node's parser. */
export const tooManyChunks = 'DARKROOM_TOO_MANY_CHUNKS';

/** A request with a limit for the chunks of its body, whether the body is read or discarded. */
export class BoundedMessage extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    const push = this.push.bind(this);
    let [chunks, bytes, isRefused] = [0, 0, false];
    // Express replaces the prototype of a request, so methods of this class would be lost: they are set on the object.
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

/** As Node does with what it cannot parse. */
function refuse(socket: Socket): void {
  const { server } = socket as Socket & { server: Server };
  server.emit('clientError', Object.assign(new Error(tooManyChunks), { code: tooManyChunks }), socket);
}
