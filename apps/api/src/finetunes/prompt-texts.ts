import type { Finetune, Style } from '@app/domain';
import { applyTemplate, FieldProblems, limits, Phrase, UnprocessableError } from '@app/domain';
import type { CreatePromptDto } from '@app/domain/http';
import { loopTime } from '../defence/loop-time';

/**
 * The Style's text with the Fine-Tune's token and name. A template may contain its placeholder many times,
 * and the name may be long.
 */
export async function fillIn(styles: readonly Style[][], finetune: Finetune): Promise<string[][]> {
  const problems = new FieldProblems();
  const message = `makes a text of more than ${limits.promptLength} characters with this Fine-Tune's token and name`;
  // A Style that is used several times is filled in once.
  const filled = new Map<Style, string | undefined>();
  await loopTime.forEach(finetune.ownerId, [...new Set(styles.flat())], (style) =>
    filled.set(style, applyTemplate(style.template, finetune, limits.promptLength)),
  );
  const texts = styles.map((each, index) => {
    if (each.some((style) => filled.get(style) === undefined)) problems.add(`/${index}`, 'id', message);
    return each.map((style) => filled.get(style) ?? '');
  });
  if (problems.count > 0) throw new UnprocessableError('PromptTooLong', problems.sentence(), problems.list());
  return texts;
}

/** @throws UnprocessableError naming each text without the Fine-Tune's name. */
export async function refuseWithoutName({ ownerId, name }: Finetune, dtos: readonly CreatePromptDto[]): Promise<void> {
  const problems = new FieldProblems();
  const phrase = new Phrase(name);
  await loopTime.forEach(ownerId, dtos, ({ prompt }, index) => {
    if (!phrase.isIn(prompt))
      problems.add(`/${index}`, 'prompt', `must include the Fine-Tune's name "${name}" as a word`);
  });
  if (problems.count > 0)
    throw new UnprocessableError('PromptDoesNotIncludeFineTuneName', problems.sentence(), problems.list());
}
