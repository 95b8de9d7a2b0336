import type { Config } from '@app/config';
import { ServiceUnavailableError, UnprocessableError } from '@app/domain';
import { ModerationDownError, ModerationHook, type PromptRules, readPromptRules } from '@app/moderation';
import type { JsonLogger, Metrics } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { loopTime } from '../defence/loop-time';

interface PlacedText {
  text: string;
  pointer: string;
}

const refusers = ['rules', 'moderation'] as const;
type Refuser = (typeof refusers)[number];

/** Refuses texts that the operator does not want drawn. */
@Injectable()
export class ModerationService {
  constructor(
    private readonly rules: Pick<PromptRules, 'refusalOf'> | undefined,
    private readonly hook: Pick<ModerationHook, 'flaggedTexts'> | undefined,
    private readonly onRefused: (by: Refuser) => void,
  ) {}

  /** @throws StartError for a file of rules that cannot be used */
  static async open(config: Config, logger: JsonLogger, metrics: Metrics): Promise<ModerationService> {
    const { promptRules } = config;
    const rules = promptRules === undefined ? undefined : await readPromptRules(promptRules);
    const refused = metrics.counter('prompts_refused_total', {
      help: 'Requests with a text that is refused, by PROMPT_RULES (rules) or MODERATION_URL (moderation).',
      labels: ['by'],
    });
    for (const by of refusers) refused.inc({ by }, 0);
    return new ModerationService(rules, ModerationHook.of(config, logger, metrics), (by) => refused.inc({ by }));
  }

  /**
   * @throws UnprocessableError `PromptRefused` with the operator's sentence, for all texts that are refused;
   * ServiceUnavailableError while the moderation cannot be asked, if that refuses
   */
  async check(ownerId: string, texts: readonly PlacedText[]): Promise<void> {
    const { rules, hook } = this;
    if (texts.length === 0) return;
    const different = [...new Set(texts.map(({ text }) => text))];
    if (rules) {
      const refusals = new Map<string, string | undefined>();
      await loopTime.forEach(ownerId, different, (text) => refusals.set(text, rules.refusalOf(text)));
      this.refuse('rules', texts, refusals);
    }
    if (!hook) return;
    const flagged = await hook.flaggedTexts(different).catch((error: unknown) => {
      if (!(error instanceof ModerationDownError)) throw error;
      throw new ServiceUnavailableError('Texts are looked at before they are drawn, and that is not possible now.', 10);
    });
    const refusals = new Map(different.map((text, i) => [text, flagged[i] && flaggedSentence(flagged[i])]));
    this.refuse('moderation', texts, refusals);
  }

  /** @param refusals why each text is refused; undefined for one that is not */
  private refuse(by: Refuser, texts: readonly PlacedText[], refusals: ReadonlyMap<string, string | undefined>): void {
    const found = texts.flatMap(({ text, pointer }) => {
      const sentence = refusals.get(text);
      return sentence === undefined ? [] : [{ sentence, pointer, message: `is refused: ${sentence}` }];
    });
    const refused = [...new Map(found.map((each) => [each.pointer, each])).values()];
    if (refused.length === 0) return;
    this.onRefused(by);
    const fields = refused.map(({ pointer, message }) => ({ pointer, message }));
    throw new UnprocessableError('PromptRefused', refused[0].sentence, fields);
  }
}

const flaggedSentence = (categories: readonly string[]): string =>
  `The moderation of this service does not let it be drawn${categories.length > 0 ? ` (${categories.join(', ')})` : ''}.`;
