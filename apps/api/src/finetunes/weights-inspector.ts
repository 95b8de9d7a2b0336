import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { UnprocessableError } from '@app/domain';
import { Injectable } from '@nestjs/common';
import type { Inspection, InspectionOrder } from './inspection-thread';

/** What accepted weights are. */
export type AcceptedWeights = Extract<Inspection, { outcome: 'accepted' }>;

/** Longer than any honest file takes; one that is made to take long is given up. */
const timeoutMs = 60_000;

/**
 * Checks uploaded weights against a model in a thread of its own: every number is read, which would hold up all other
 * requests. One file at a time, for each may take gigabytes of memory.
 */
@Injectable()
export class WeightsInspector {
  /** Compiled entry of the thread; tests name the one in `dist`. */
  static threadFile = join(__dirname, 'inspection-thread.js');

  private last: Promise<unknown> = Promise.resolve();

  /**
   * @param modelFolder that the weights are for.
   * @throws UnprocessableError `WeightsMalformed`, `WeightsDoNotFitModel` or `WeightsKindUnsupported`; `WeightsTooComplex`
   * for a file that takes too much time or memory; `ModelBroken`
   */
  inspect(path: string, modelFolder: string): Promise<AcceptedWeights> {
    const result = this.last.then(() => this.run({ path, modelFolder }));
    this.last = result.catch(() => undefined);
    return result;
  }

  private async run(workerData: InspectionOrder): Promise<AcceptedWeights> {
    const worker = new Worker(WeightsInspector.threadFile, { workerData });
    const timer = setTimeout(() => void worker.terminate(), timeoutMs);
    try {
      const found = await new Promise<Inspection>((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
        worker.once('exit', () => reject(tooComplex()));
      });
      if (found.outcome === 'accepted') return found;
      if (found.outcome === 'refused') throw new UnprocessableError(found.code, found.message);
      if (found.outcome === 'tooLarge') throw tooComplex();
      throw new Error('Weights could not be inspected.', { cause: found.error });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY') throw tooComplex();
      throw error;
    } finally {
      clearTimeout(timer);
      await worker.terminate();
    }
  }
}

function tooComplex(): UnprocessableError {
  return new UnprocessableError('WeightsTooComplex', 'The file takes too much time or memory to be checked.');
}
