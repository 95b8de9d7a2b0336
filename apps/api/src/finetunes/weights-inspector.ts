import { join } from 'node:path';
import { ServiceUnavailableError, TooManyError, UnprocessableError } from '@app/domain';
import { JsonLogger } from '@app/observability';
import type { OnApplicationShutdown } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { FairTurns, TurnsFullError } from '../work/fair-turns';
import { WorkError, WorkProcess } from '../work/work-process';
import type { Inspection, InspectionOrder } from './inspection-process';

/** What accepted weights are. */
export type AcceptedWeights = Extract<Inspection, { outcome: 'accepted' }>;

/** Ten times what a file of 1 GiB takes on a slow disk whose shapes fit the model; nothing else is read. */
const timeMs = 30_000;
/** A header of 8 MiB parsed, a model's graph, and the runtime itself. */
const heapMb = 384;
const residentMb = 1024;
/** One file of a key is looked at before the next key's turn. A key has at most four on their way, and so many may wait of all. */
const turns = { keyConcurrency: 1, perKey: 4, total: 200 };
const retryAfterSeconds = 10;

/** Too many files wait to be looked at. */
class InspectionsFullError extends TooManyError {
  constructor() {
    super('TooManyUploads', 'Too many files wait to be checked. Try again shortly.', retryAfterSeconds);
  }
}

/**
 * Checks uploaded weights against a model in a process of its own, with bounds of time and memory. One file at a time, and keys
 * take turns: who sends many waits for them alone.
 */
@Injectable()
export class WeightsInspector implements OnApplicationShutdown {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static processFile = join(__dirname, 'inspection-process.js');

  private readonly turns = new FairTurns(turns);
  private readonly work: WorkProcess<InspectionOrder, Inspection>;

  constructor(logger: JsonLogger) {
    this.work = new WorkProcess({
      name: 'inspection',
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
   * @param modelFolder that the weights are for.
   * @throws UnprocessableError `WeightsMalformed`, `WeightsDoNotFitModel` or `WeightsKindUnsupported`; `WeightsTooComplex`
   * for a file that takes too much time or memory; `ModelBroken`. InspectionsFullError while too many wait.
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

/** A file that ends the process twice is at fault itself, whatever it was that ended it. */
function outcomeOf(error: WorkError): Error {
  if (error.failure === 'closed') return new ServiceUnavailableError('The service is ending.');
  return error.failure === 'failed' ? error : tooComplex();
}

function tooComplex(): UnprocessableError {
  return new UnprocessableError('WeightsTooComplex', 'The file takes too much time or memory to be checked.');
}
