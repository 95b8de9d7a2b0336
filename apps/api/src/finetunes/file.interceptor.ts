import { Readable } from 'node:stream';
import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import type { Response } from 'express';
import { concatMap, type Observable } from 'rxjs';
import { callerOf } from '../http/caller.decorator';
import { PictureReaders } from '../files/picture-readers';
import { namesEtag } from '../http/response-headers';
import { sendStored } from '../http/send-stored';

/** A file of a record, ready to send. */
export interface StoredFile {
  /** The record's, for people. */
  name: string;
  /** SHA-256 of the file, in hexadecimal. */
  hash: string;
  /** Called only for a client that does not have it. @throws DomainError if it is not there any more */
  open: () => Promise<{ bytes: number; stream: Readable }>;
}

/**
 * For a route that returns a `StoredFile`: the response is that file. The route takes `@Res()` without using it, so
 * that Nest sends no response itself.
 */
export const SendsFile = () => UseInterceptors(FileInterceptor);

@Injectable()
class FileInterceptor implements NestInterceptor {
  private readonly readers = new PictureReaders();

  intercept(context: ExecutionContext, next: CallHandler<StoredFile>): Observable<void> {
    const response = context.switchToHttp().getResponse<Response>();
    const { id: ownerId } = callerOf(context);
    return next.handle().pipe(concatMap((file) => this.send(ownerId, file, response)));
  }

  private async send(ownerId: string, { name, hash, open }: StoredFile, response: Response): Promise<void> {
    const etag = `"${hash}"`;
    const isKnown = namesEtag(response.req.headers['if-none-match'], etag);
    const { bytes, stream } = isKnown ? { bytes: 0, stream: Readable.from([]) } : await open();
    response.attachment(`${name.slice(0, 100)}.safetensors`).set({
      'Content-Type': 'application/octet-stream',
      'Cache-Control': 'private, no-cache',
      ETag: etag,
    });
    await sendStored(response, { ownerId, stream, bytes, etag }, this.readers);
  }
}
