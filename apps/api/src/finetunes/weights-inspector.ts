import { join } from 'node:path';
import { ServiceUnavailableError, TooManyError, UnprocessableError } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { FairTurns, TurnsFullError, WorkError, WorkProcess } from '@app/process';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Inspection, InspectionOrder } from './inspection-process';

/** The properties of accepted weights. */
export type AcceptedWeights = Extract<Inspection, { outcome: 'accepted' }>;

/** Ten times what a fitting 1 GiB file takes on a slow disk; other files are not read. */
const timeMs = 30_000;
/** Enough for a parsed header of 8 MiB, a model's graph, and the runtime itself. */
const heapMb = 384;
const residentMb = 1024;
/**
 * One file at a time, keys in turn. A key has at most four uploads in progress; `total` bounds the inspections that
 * wait.
 */
const turns = { concurrency: 1, keyConcurrency: 1, perKey: 4, total: 200 };
const retryAfterSeconds = 10;

class InspectionsFullError extends TooManyError {
  constructor() {
    super('TooManyUploads', 'Too many files wait to be checked. Try again shortly.', retryAfterSeconds);
  }
}

/**
 * Checks uploaded weights against a model in a child process, within limits of time and memory. One file at a time, and
 * keys take turns: a caller with many files waits only for itself.
 */
@Injectable()
export class WeightsInspector implements OnApplicationShutdown {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static processFile = join(__dirname, 'inspection-process.js');

  private readonly turns = new FairTurns(turns);
  private readonly work: WorkProcess<InspectionOrder, Inspection>;

  constructor(logger: JsonLogger) {
    this.work = new WorkProcess({
      file: WeightsInspector.processFile,
      timeMs,
      heapMb,
      residentMb,
      onDeath: (reason) => logger.warn('the process that inspects weights was ended', { reason }),
    });
  }

  onApplicationShutdown(): void {
    this.work.close();
  }

  /**
   * @param modelFolder folder of the base model.
   * @throws UnprocessableError `WeightsMalformed`, `WeightsDoNotFitModel` or `WeightsKindUnsupported`;
   * `WeightsTooComplex` for a file that takes too much time or memory; `ModelBroken`. InspectionsFullError while too
   * many wait. ServiceUnavailableError while the child cannot start.
   */
  async inspect(ownerId: string, path: string, modelFolder: string): Promise<AcceptedWeights> {
    const found = await this.turns
      .run(ownerId, () => this.work.run({ path, modelFolder }))
      .catch((error: Error) => {
        if (error instanceof TurnsFullError) throw new InspectionsFullError();
        throw error instanceof WorkError ? outcomeOf(error) : error;
      });
    if (found.outcome === 'accepted') return found;
    if (found.outcome === 'refused') throw new UnprocessableError(found.code, found.message);
    throw tooComplex();
  }
}

/** A file whose process dies twice is itself the cause, however the process ended. */
function outcomeOf(error: WorkError): Error {
  if (error.failure === 'closed') return new ServiceUnavailableError('The service is ending.');
  if (error.failure === 'not started')
    return new ServiceUnavailableError('Files cannot be checked at the moment. Try again shortly.');
  return error.failure === 'failed' ? error : tooComplex();
}

function tooComplex(): UnprocessableError {
  return new UnprocessableError('WeightsTooComplex', 'The file takes too much time or memory to be checked.');
}
