import {
  applyTemplate,
  FieldProblems,
  type Finetune,
  limits,
  newIdentifier,
  Phrase,
  type Style,
  writeToken,
} from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import type { CreatePromptDto } from '@app/domain/http';
import { type CheckedInputs, type DrawnBody, resolvedOrder } from '../models/resolved-order';
import { loopTime } from '../defence/loop-time';

/** The body of a Prompt, or of a Style with what that decides. */
export type PromptBody = DrawnBody & Pick<CreatePromptDto, 'prompt' | 'metadata' | 'user' | 'webhook'>;

/**
 * A new Prompt with every default resolved and the seed chosen; the key and the text add the rest.
 * @param ownerId the key that is charged, which need not be the one that made the Fine-Tune
 * @param served the model that will draw it
 */
export function newPrompt(
  finetune: Finetune,
  body: PromptBody,
  {
    ownerId,
    createdAt,
    served,
    ...checked
  }: CheckedInputs & { ownerId: string; createdAt: Date; served: InstalledModel },
) {
  const { id: finetuneId, model } = finetune;
  const { prompt, metadata = null, user = null, webhook = null } = body;
  return {
    id: newIdentifier(),
    kind: 'prompt' as const,
    ownerId,
    endUser: user,
    finetuneId,
    model,
    prompt: writeToken(prompt, finetune),
    ...resolvedOrder(body, checked, { model, served }),
    createdAt,
    finetunePrompt: { prompt, metadata, webhook },
  };
}

export type NewPrompt = ReturnType<typeof newPrompt>;

/**
 * The Style's text with the Fine-Tune's token and name. A template may contain its placeholder many times, and the name
 * may be long.
 */
export async function fillIn(
  ownerId: string,
  styles: readonly Style[][],
  finetune: Finetune,
  array = '',
): Promise<string[][]> {
  const problems = new FieldProblems();
  const message = `makes a text of more than ${limits.promptLength} characters with this Fine-Tune's token and name`;
  // A Style that is used several times is filled in once.
  const filled = new Map<Style, string | undefined>();
  await loopTime.forEach(ownerId, [...new Set(styles.flat())], (style) =>
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
  ownerId: string,
  { name }: Finetune,
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
