import { join } from 'node:path';
import { FairTurns, WorkError, WorkProcess } from '@app/process';
import type { Trust } from './c2pa';
import type { PictureReport } from './picture-report';

/** A picture to read, and its type, such as `image/png`. */
export interface VerifyingOrder {
  path: string;
  type: string;
  /** The certificates of the service, for which a signature by one of them is its own. */
  own: Trust;
}

/** Owners in turn, one file of each at a time. */
const turns = { concurrency: 2, keyConcurrency: 1, perKey: 100, total: 1_000 };
/** Many times what the largest file takes. */
const bounds = { timeMs: 20_000, heapMb: 256, residentMb: 1_024 };

/** The credentials of the picture cannot be read: the message says why. */
export class UnreadableCredentialsError extends Error {
  override readonly name = 'UnreadableCredentialsError';
}

/** Reads what pictures of callers say of themselves, each in a process of its own. */
export class PictureVerifier {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static processFile = join(__dirname, 'verifying-process.js');

  private readonly turns = new FairTurns(turns);
  private readonly work = new WorkProcess<VerifyingOrder, PictureReport>({
    file: PictureVerifier.processFile,
    ...bounds,
  });

  /** @throws UnreadableCredentialsError; TurnsFullError; WorkError, which may pass */
  verify(owner: string, order: VerifyingOrder): Promise<PictureReport> {
    return this.turns
      .run(owner, () => this.work.run(order))
      .catch((error: Error) => {
        const isOfFile = error instanceof WorkError && ['failed', 'time', 'memory'].includes(error.failure);
        throw isOfFile ? new UnreadableCredentialsError(error.message) : error;
      });
  }

  close(): void {
    this.work.close();
  }
}
