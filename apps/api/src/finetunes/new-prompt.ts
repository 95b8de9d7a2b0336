import {
  applyTemplate,
  type DrawingInputs,
  FieldProblems,
  type Finetune,
  limits,
  type Metadata,
  newIdentifier,
  Phrase,
  type Style,
  writeToken,
} from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import type { CreatePromptDto } from '@app/domain/http';
import { type DrawingOrder, resolvedOrder } from '../models/resolved-order';
import { loopTime } from '../defence/loop-time';

const notInPrompts = { scheduler: undefined, outputFormat: undefined, promptWeighting: undefined };

/** A requested Prompt; undefined and null fields get their defaults. No key may be left out, as in a DrawingOrder. */
export interface PromptOrder extends Omit<DrawingOrder, keyof typeof notInPrompts> {
  prompt: string;
  negativePrompt: string | null | undefined;
  inputs: DrawingInputs;
  metadata: Metadata | null | undefined;
  webhook: string | null | undefined;
}

/**
 * A new Prompt with every default resolved and the seed chosen; the key and the text add the rest.
 * @param served the model that will draw it
 */
export function newPrompt(finetune: Finetune, order: PromptOrder, createdAt: Date, served: InstalledModel) {
  const { ownerId, id: finetuneId, model } = finetune;
  return {
    id: newIdentifier(),
    kind: 'prompt' as const,
    ownerId,
    finetuneId,
    model,
    prompt: writeToken(order.prompt, finetune),
    negativePrompt: order.negativePrompt ?? null,
    ...resolvedOrder({ ...order, ...notInPrompts }, model, served),
    inputs: Object.keys(order.inputs).length > 0 ? order.inputs : null,
    numImages: 1,
    createdAt,
    finetunePrompt: { prompt: order.prompt, metadata: order.metadata ?? null, webhook: order.webhook ?? null },
  };
}

export type NewPrompt = ReturnType<typeof newPrompt>;

/**
 * The Style's text with the Fine-Tune's token and name. A template may contain its placeholder many times, and the name
 * may be long.
 */
export async function fillIn(styles: readonly Style[][], finetune: Finetune, array = ''): Promise<string[][]> {
  const problems = new FieldProblems();
  const message = `makes a text of more than ${limits.promptLength} characters with this Fine-Tune's token and name`;
  // A Style that is used several times is filled in once.
  const filled = new Map<Style, string | undefined>();
  await loopTime.forEach(finetune.ownerId, [...new Set(styles.flat())], (style) =>
    filled.set(style, applyTemplate(style.template, finetune, limits.promptLength)),
  );
  const texts = styles.map((each, index) => {
    if (each.some((style) => filled.get(style) === undefined)) problems.add(`${array}/${index}`, 'id', message);
    return each.map((style) => filled.get(style) ?? '');
  });
  problems.refuseIfAny('PromptTooLong');
  return texts;
}

/** @throws UnprocessableError naming each text without the Fine-Tune's name. */
export async function refuseWithoutName(
  { ownerId, name }: Finetune,
  dtos: readonly CreatePromptDto[],
  array = '',
): Promise<void> {
  const problems = new FieldProblems();
  const phrase = new Phrase(name);
  await loopTime.forEach(ownerId, dtos, ({ prompt }, index) => {
    if (!phrase.isIn(prompt))
      problems.add(`${array}/${index}`, 'prompt', `must include the Fine-Tune's name "${name}" as a word`);
  });
  problems.refuseIfAny('PromptDoesNotIncludeFineTuneName');
}
