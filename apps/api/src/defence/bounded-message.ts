// Attack: a body in chunks of one byte, each of which costs as much as one of 64 KiB; also to who only discards it.
import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';

/** Chunks that any body may come in: enough for who writes its JSON word by word. */
const freeChunks = 4096;
/** A body of more chunks has at least this many bytes for each of them; a packet of a slow line has twice as many. */
const bytesPerChunk = 256;

/** Code of the error of a body in too many chunks, as those of Node's parser. */
export const tooManyChunks = 'DARKROOM_TOO_MANY_CHUNKS';

/** A request that bounds what the bytes of its body cost, for whoever reads them, and for nobody. */
export class BoundedMessage extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    const push = this.push.bind(this);
    let [chunks, bytes, isRefused] = [0, 0, false];
    // Express gives a request another prototype, so methods of this class would not be found. Node dumps what nobody has
    // read when the answer is sent: it would be counted no more.
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
