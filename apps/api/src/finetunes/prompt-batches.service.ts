import type { Finetune } from '@app/domain';
import { NotFoundError, UnprocessableError } from '@app/domain';
import { staleNote } from '@app/domain/http';
import type { InstalledModel } from '@app/model-store';
import { weightsName } from '@app/model-store';
import { Injectable } from '@nestjs/common';
import type { NewOrder } from '../generations/acceptance.service';
import { AcceptanceService } from '../generations/acceptance.service';
import type { CallerKey } from '../http/caller.decorator';
import { PromptLengths } from '../models/prompt-lengths.service';
import type { NewPrompt } from './new-prompt';

/** The Prompts that one request makes of a Fine-Tune. */
interface PromptBatch {
  caller: CallerKey;
  finetune: Finetune;
  /** The model that draws them. */
  served: InstalledModel;
  prompts: readonly NewPrompt[];
  /** One for each Prompt. */
  orders: readonly NewOrder[];
  /** The field of the body with a text of a Prompt. */
  pointerTo: (index: number, field: string) => string;
}

/** Writes the Prompts of a request. */
@Injectable()
export class PromptBatches {
  constructor(
    private readonly acceptance: AcceptanceService,
    private readonly lengths: PromptLengths,
  ) {}

  /**
   * Inserts the rows, tasks and jobs of all of them together.
   * @throws UnprocessableError for weights that no longer fit, or a text that is too long
   * @throws NotFoundError for a Fine-Tune deleted meanwhile; what `AcceptanceService` throws
   */
  async insert({ caller, finetune, served, prompts, orders, pointerTo }: PromptBatch): Promise<void> {
    const base = weightsName(served);
    if (finetune.isStale(base)) throw new UnprocessableError('FineTuneStale', staleNote(finetune, base));
    if (prompts.length === 0) return;
    const chunks = await this.lengths.check(caller.id, served, prompts, pointerTo, finetune);
    const terms = this.acceptance.accept(caller, orders);
    const tasks = prompts.map((prompt, index) => ({ ...prompt, ...terms[index], promptChunks: chunks[index] }));
    await this.acceptance.insert(caller, tasks).catch((error: unknown) => {
      throw isOfRemovedFinetune(error) ? new NotFoundError('FineTune') : error;
    });
  }
}

/** The Fine-Tune existed when the request began. */
function isOfRemovedFinetune(error: unknown): boolean {
  const { code, constraint } = error as { code?: string; constraint?: string };
  return code === '23503' && constraint === 'finetune_prompts_finetune_id_fkey';
}
