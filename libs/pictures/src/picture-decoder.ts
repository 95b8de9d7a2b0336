import { join } from 'node:path';
import { limits } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { FairTurns, WorkError, WorkProcess } from '@app/process';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Decoded, DecodingOrder } from './decode-picture';
import type { DecodingResult } from './decoding-process';
import { NoPictureError } from './picture-error';
import { formatOfSource } from './picture-format';

interface PoolLimits {
  most: DecodingOrder['most'];
  timeMs: number;
  residentMb: number;
}

/** For most pictures, up to a telephone's photographs: they do not wait for costly ones. */
const quick: PoolLimits = { most: { ...limits.sentPicture, pixels: 12.5e6 }, timeMs: 2_000, residentMb: 512 };
/**
 * Several times what the costliest picture takes: 50 megapixels to turn upright take five seconds of a processor. The
 * memory holds two copies of them with four channels of 16 bits.
 */
const patient: PoolLimits = { most: limits.sentPicture, timeMs: 30_000, residentMb: 1024 };
const heapMb = 128;
/** Owners in turn, one file of each at a time. */
const turns = { concurrency: 2, keyConcurrency: 1 };

/** An order without its limit. */
export type Wanted = DecodingOrder extends infer Order ? (Order extends unknown ? Omit<Order, 'most'> : never) : never;

/** Decodes files of callers, each in a process of its own, within limits of pixels, time and memory. */
@Injectable()
export class PictureDecoder implements OnApplicationShutdown {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static processFile = join(__dirname, 'decoding-process.js');

  private readonly quick = new DecodingPool(quick);
  private readonly patient: DecodingPool;

  constructor(logger: JsonLogger) {
    this.patient = new DecodingPool(patient, (reason) =>
      logger.warn('the process that decodes a picture was ended', { reason }),
    );
  }

  onApplicationShutdown(): void {
    for (const pool of [this.quick, this.patient]) pool.close();
  }

  /**
   * @param load reads the file when the owner's turn has come; for a costly picture, at each of its two turns.
   * @throws NoPictureError; an error with the disk's code, such as ENOSPC, if the new file cannot be written; WorkError
   * if no process can be started; what `load` throws
   */
  async decode(ownerId: string, load: () => Promise<Wanted>): Promise<Decoded> {
    const result =
      (await this.quickly(ownerId, load)) ??
      (await this.patient.run(ownerId, load).catch((error: Error) => {
        throw isOfFile(error) ? new NoPictureError('takes too much time or memory to be read') : error;
      }));
    if (result.outcome === 'refused') throw new NoPictureError(result.reason);
    if (result.outcome === 'unwritten')
      throw Object.assign(new Error(`The picture could not be written: ${result.code}`), { code: result.code });
    return result.decoded;
  }

  /** @returns undefined for a picture beyond the quick pool's limits */
  private async quickly(ownerId: string, load: () => Promise<Wanted>): Promise<DecodingResult | undefined> {
    try {
      const result = await this.quick.run(ownerId, load);
      return result.outcome === 'refused' && result.isLarge ? undefined : result;
    } catch (error) {
      if (isOfFile(error as Error)) return undefined;
      throw error;
    }
  }
}

class DecodingPool {
  private readonly turns = new FairTurns(turns);
  private readonly work: WorkProcess<DecodingOrder, DecodingResult>;
  private readonly most: PoolLimits['most'];

  constructor({ most, ...bounds }: PoolLimits, onDeath?: (reason: string) => void) {
    this.most = most;
    this.work = new WorkProcess({ file: PictureDecoder.processFile, heapMb, ...bounds, ...(onDeath && { onDeath }) });
  }

  close(): void {
    this.work.close();
  }

  run(ownerId: string, load: () => Promise<Wanted>): Promise<DecodingResult> {
    return this.turns.run(ownerId, async () => {
      const order = await load();
      // What is no picture at all costs no process.
      await formatOfSource(order.source);
      return this.work.run({ ...order, most: this.most });
    });
  }
}

/** A file whose process dies twice is itself the cause, whatever ended the process. */
const isOfFile = (error: Error): boolean =>
  error instanceof WorkError && ['time', 'memory', 'died'].includes(error.failure);
