import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { FairTurns, WorkError, WorkProcess } from '@app/process';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Decoded, DecodingOrder } from './decode-picture';
import type { DecodingResult } from './decoding-process';
import { NoPictureError } from './picture-error';
import { formatOf } from './picture-format';

/** Several times what the dearest picture takes: 50 megapixels that are turned upright, five seconds of a processor. */
const timeMs = 30_000;
const heapMb = 128;
/** Enough for two copies of 50 megapixels of four channels of 16 bits. */
const residentMb = 1024;
/** Owners in turn, one file of each at a time. */
const turns = { concurrency: 2, keyConcurrency: 1, perKey: Infinity, total: Infinity };

/** An order without its limit. */
export type Wanted = DecodingOrder extends infer Order ? (Order extends unknown ? Omit<Order, 'most'> : never) : never;

/** Decodes files of callers, each in a process of its own, within limits of pixels, time and memory. */
@Injectable()
export class PictureDecoder implements OnApplicationShutdown {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static processFile = join(__dirname, 'decoding-process.js');

  private readonly turns = new FairTurns(turns);
  private readonly work: WorkProcess<DecodingOrder, DecodingResult>;

  constructor(logger: JsonLogger) {
    const onDeath = (reason: string): void => logger.warn('the process that decodes a picture was ended', { reason });
    this.work = new WorkProcess({ file: PictureDecoder.processFile, timeMs, heapMb, residentMb, onDeath });
  }

  onApplicationShutdown(): void {
    this.work.close();
  }

  /**
   * @param load reads the file when the owner's turn has come.
   * @throws NoPictureError; an error with the disk's code, such as ENOSPC, if the new file cannot be written; WorkError
   * if no process can be started; what `load` throws
   */
  async decode(ownerId: string, load: () => Promise<Wanted>): Promise<Decoded> {
    const result = await this.turns
      .run(ownerId, async () => this.run(await load()))
      .catch((error: Error) => {
        throw isOfFile(error) ? new NoPictureError('takes too much time or memory to be read') : error;
      });
    if (result.outcome === 'refused') throw new NoPictureError(result.reason);
    if (result.outcome === 'unwritten')
      throw Object.assign(new Error(`The picture could not be written: ${result.code}`), { code: result.code });
    return result.decoded;
  }

  private async run(order: Wanted): Promise<DecodingResult> {
    // A file that is no picture at all costs no process.
    formatOf(await headOf(order.source));
    return this.work.run({ ...order, most: limits.sentPicture });
  }
}

/** As many of the first bytes as tell the format. */
async function headOf(source: Uint8Array | string): Promise<Uint8Array> {
  if (typeof source !== 'string') return source;
  const file = await open(source);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(32), 0, 32, 0).finally(() => file.close());
  return buffer.subarray(0, bytesRead);
}

/** A file whose process dies twice is itself the cause, whatever ended the process. */
const isOfFile = (error: Error): boolean =>
  error instanceof WorkError && ['time', 'memory', 'died'].includes(error.failure);
