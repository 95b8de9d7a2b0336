import type { AspectRatio, Finetune, Metadata } from '@app/domain';
import type { ModelDefaults } from '@app/model-store';
import { newIdentifier, writeToken } from '@app/domain';
import { resolvedOrder } from '../models/resolved-order';

/** A requested Prompt; undefined and null fields get their defaults. */
export interface PromptOrder {
  prompt: string;
  negativePrompt?: string | null;
  cfg?: number | null;
  steps?: number | null;
  seed?: number;
  highResolution?: boolean;
  aspectRatio?: AspectRatio;
  metadata?: Metadata | null;
  webhook?: string | null;
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
      ...resolvedOrder(order, modelDefaults),
      numImages: 1,
      status: 'queued',
      error: null,
      createdAt,
    },
  } as const;
}

export type NewPrompt = ReturnType<typeof newPrompt>;
