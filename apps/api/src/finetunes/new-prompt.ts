import type { Finetune, Metadata } from '@app/domain';
import { newIdentifier, writeToken } from '@app/domain';
import type { ModelDefaults } from '@app/model-store';
import type { DrawingOrder } from '../models/resolved-order';
import { resolvedOrder } from '../models/resolved-order';

/** What a Generation may choose and a Prompt may not. */
const notInPrompts = { scheduler: undefined, outputFormat: undefined, promptWeighting: undefined };

/** A requested Prompt; undefined and null fields get their defaults. No key may be left out, as in a DrawingOrder. */
export interface PromptOrder extends Omit<DrawingOrder, keyof typeof notInPrompts> {
  prompt: string;
  negativePrompt: string | null | undefined;
  metadata: Metadata | null | undefined;
  webhook: string | null | undefined;
}

/**
 * The row of a new Prompt and its task, with every default resolved and the seed chosen.
 * @param modelDefaults those of the model that will draw it
 */
export function newPrompt(finetune: Finetune, order: PromptOrder, createdAt: Date, modelDefaults: ModelDefaults) {
  const id = newIdentifier();
  const { ownerId, id: finetuneId, model } = finetune;
  return {
    id,
    ownerId,
    finetuneId,
    prompt: order.prompt,
    metadata: order.metadata ?? null,
    webhook: order.webhook ?? null,
    task: {
      id,
      kind: 'prompt',
      ownerId,
      finetuneId,
      prompt: writeToken(order.prompt, finetune),
      negativePrompt: order.negativePrompt ?? null,
      model,
      ...resolvedOrder({ ...order, ...notInPrompts }, modelDefaults),
      numImages: 1,
      status: 'queued',
      error: null,
      createdAt,
    },
  } as const;
}

export type NewPrompt = ReturnType<typeof newPrompt>;
