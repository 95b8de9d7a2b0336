import type { Config } from '@app/config';
import { ServiceUnavailableError, UnprocessableError } from '@app/domain';
import { ModerationDownError, ModerationHook, type PromptRules, readPromptRules } from '@app/moderation';
import type { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';

interface PlacedText {
  text: string;
  pointer: string;
}

/** Refuses texts that the operator does not want drawn. */
@Injectable()
export class ModerationService {
  constructor(
    private readonly rules: Pick<PromptRules, 'refusalOf'> | undefined,
    private readonly hook: Pick<ModerationHook, 'flaggedTexts'> | undefined,
  ) {}

  /** @throws StartError for a file of rules that cannot be used */
  static async open(config: Config, logger: JsonLogger): Promise<ModerationService> {
    const { promptRules, moderationUrl: url, moderationKey: key, moderationOnError: onError } = config;
    const onDown = (reason: string): void =>
      logger.warnSparingly('the moderation cannot be asked', { reason, onError });
    return new ModerationService(
      promptRules === undefined ? undefined : await readPromptRules(promptRules),
      url === undefined ? undefined : new ModerationHook({ url, key, onError, onDown }),
    );
  }

  /**
   * @throws UnprocessableError `PromptRefused` with the operator's sentence, for all texts that are refused;
   * ServiceUnavailableError while the moderation cannot be asked, if that refuses
   */
  async check(texts: readonly PlacedText[]): Promise<void> {
    const { rules, hook } = this;
    if (texts.length === 0) return;
    if (rules)
      refuse(
        texts.map(({ text }) => rules.refusalOf(text)),
        texts,
      );
    if (!hook) return;
    const different = [...new Set(texts.map(({ text }) => text))];
    const flagged = await hook.flaggedTexts(different).catch((error: unknown) => {
      if (!(error instanceof ModerationDownError)) throw error;
      throw new ServiceUnavailableError('Texts are looked at before they are drawn, and that is not possible now.', 10);
    });
    const sentences = new Map(different.map((text, i) => [text, flagged[i] && flaggedSentence(flagged[i])]));
    refuse(
      texts.map(({ text }) => sentences.get(text)),
      texts,
    );
  }
}

const flaggedSentence = (categories: readonly string[]): string =>
  `The moderation of this service does not let it be drawn${categories.length > 0 ? ` (${categories.join(', ')})` : ''}.`;

/** @param sentences why each text is refused; undefined for one that is not */
function refuse(sentences: readonly (string | undefined)[], texts: readonly PlacedText[]): void {
  const fields = texts.flatMap(({ pointer }, i) =>
    sentences[i] === undefined ? [] : [{ pointer, message: `is refused: ${sentences[i]}` }],
  );
  if (fields.length > 0)
    throw new UnprocessableError(
      'PromptRefused',
      sentences.find((sentence) => sentence !== undefined)!,
      fields,
    );
}
