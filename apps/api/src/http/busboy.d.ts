declare module 'busboy' {
  import type { IncomingHttpHeaders } from 'node:http';
  import type { Readable, Writable } from 'node:stream';

  interface Busboy extends Writable {
    on(event: 'file', listener: (name: string, stream: Readable) => void): this;
    on(
      event: 'field',
      listener: (name: string | undefined, value: string | undefined, info: { valueTruncated: boolean }) => void,
    ): this;
    on(event: 'filesLimit' | 'fieldsLimit' | 'partsLimit' | 'close', listener: () => void): this;
    on(event: 'error', listener: (error: Error) => void): this;
  }

  export default function busboy(options: {
    headers: IncomingHttpHeaders;
    limits?: { files?: number; fields?: number; parts?: number; fieldSize?: number };
  }): Busboy;
}
