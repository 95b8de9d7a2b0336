import {
  applyTemplate,
  characterCount,
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
import { refuseMuchText } from '../collections/applied-styles';
import { loopTime } from '../defence/loop-time';

/** The body of a Prompt, or of a Style with what that decides. */
export type PromptBody = DrawnBody & Pick<CreatePromptDto, 'prompt' | 'metadata' | 'user' | 'webhook'>;

/**
 * A new Prompt with every default resolved and the seed chosen; the key and the text add the rest.
 * @param ownerId the key that is charged, which need not be the one that made the Fine-Tune
 * @param served the model that will draw it
 * @param drawn the text with the Fine-Tune's token
 */
export function newPrompt(
  finetune: Finetune,
  body: PromptBody,
  {
    ownerId,
    createdAt,
    served,
    drawn,
    ...checked
  }: CheckedInputs & { ownerId: string; createdAt: Date; served: InstalledModel; drawn: string },
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
    prompt: drawn,
    ...resolvedOrder(body, checked, { model, served }),
    createdAt,
    finetunePrompt: { prompt, metadata, webhook },
  };
}

export type NewPrompt = ReturnType<typeof newPrompt>;

/** The text that is drawn for each text, by that; equal ones are read once. */
export async function drawnTexts(
  ownerId: string,
  finetune: Finetune,
  texts: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const drawn = new Map<string, string>();
  await loopTime.forEach(ownerId, [...new Set(texts)], (text) => drawn.set(text, writeToken(text, finetune)));
  return drawn;
}

/**
 * The Style's text with the Fine-Tune's token and name. A template may contain its placeholder many times, and the name
 * may be long.
 * @throws UnprocessableError naming each Style whose text is too long; `TooManyPrompts` for too much of them together
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
  const lengths = new Map<Style, number>();
  await loopTime.forEach(ownerId, [...new Set(styles.flat())], (style) => {
    const text = applyTemplate(style.template, finetune, limits.promptLength);
    filled.set(style, text);
    lengths.set(style, characterCount(text ?? '') + characterCount(style.negativePrompt ?? ''));
  });
  const texts = styles.map((each, index) => {
    if (each.some((style) => filled.get(style) === undefined)) problems.add(`${array}/${index}`, 'id', message);
    return each.map((style) => filled.get(style) ?? '');
  });
  problems.refuseIfAny('PromptTooLong');
  refuseMuchText(styles.flat().reduce((sum, style) => sum + (lengths.get(style) ?? 0), 0));
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
