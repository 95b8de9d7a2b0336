import type { Metrics } from '@app/observability';
import { fetchFailure, postBytes } from '@app/process';

/** The operator's moderation cannot be asked, or its answer cannot be read. */
export class ModerationDownError extends Error {
  override readonly name = 'ModerationDownError';
}

const outcomes = ['ok', 'flagged', 'failed'] as const;
type Outcome = (typeof outcomes)[number];

interface HookSettings {
  url: string;
  /** Sent as a Bearer token. */
  key?: string | undefined;
  /** What holds when it cannot be asked: `allow` counts as not flagged. */
  onError: 'allow' | 'refuse';
  /** Told when it cannot be asked. */
  onDown?: (reason: string) => void;
  /** Told of each time that it is asked. */
  onAsked?: (outcome: Outcome) => void;
  timeoutMs?: number;
}

/** What the configuration says of it. */
interface HookConfig {
  moderationUrl?: string;
  moderationKey?: string;
  moderationOnError: HookSettings['onError'];
}

interface Log {
  warnSparingly(message: string, details: Record<string, unknown>): void;
}

/** What is asked about: a text, or the `data:` URL of a picture. */
type Input = string | { type: 'image_url'; image_url: { url: string } };

interface Verdict {
  flagged: boolean;
  categories?: unknown;
}

/** Categories of what is flagged; undefined for what is not. */
type Flagged = string[] | undefined;

/** Texts of one request, so that none is longer than a service answers in time. */
const mostTexts = 32;

/** Categories of one text or picture; OpenAI has 13. */
const mostNames = 20;

/** Of an answer. */
const mostBytes = 1_000_000;

/** Asks the operator's moderation, in the shape of OpenAI's `POST /v1/moderations`. */
export class ModerationHook {
  constructor(private readonly settings: HookSettings) {}

  /** The one that is configured, if there is one; log and metrics tell when it cannot be asked. */
  static of(config: HookConfig, log: Log, metrics: Metrics): ModerationHook | undefined {
    const { moderationUrl: url, moderationKey: key, moderationOnError: onError } = config;
    const counter = metrics.counter('moderation_requests_total', {
      help: 'How often MODERATION_URL was asked. ok: nothing is flagged; failed: it did not answer, or not as it should.',
      labels: ['outcome'],
    });
    // A counter that first appears with a failure shows no rise.
    for (const outcome of outcomes) counter.inc({ outcome }, 0);
    const onAsked = (outcome: Outcome): void => counter.inc({ outcome });
    const onDown = (reason: string): void => log.warnSparingly('the moderation cannot be asked', { reason, onError });
    return url === undefined ? undefined : new ModerationHook({ url, key, onError, onDown, onAsked });
  }

  /**
   * What is wrong with each text: the names of its categories, or none where these are not told; undefined for one that
   * may be drawn.
   * @throws ModerationDownError
   */
  async flaggedTexts(texts: readonly string[]): Promise<Flagged[]> {
    const flagged: Flagged[] = [];
    for (let at = 0; at < texts.length; at += mostTexts) {
      const verdicts = await this.ask(texts.slice(at, at + mostTexts));
      // Who waits for it once need not wait for it again.
      if (!verdicts) break;
      flagged.push(...verdicts);
    }
    return texts.map((_, i) => flagged[i]);
  }

  /** The same of a picture. @param url a `data:` URL. @throws ModerationDownError */
  async flaggedPicture(url: string): Promise<Flagged> {
    return (await this.ask([{ type: 'image_url', image_url: { url } }]))?.[0];
  }

  /** @returns undefined where it cannot be asked and that is allowed */
  private async ask(input: readonly Input[]): Promise<Flagged[] | undefined> {
    const { onError, onDown, onAsked } = this.settings;
    try {
      const results = await this.post(input);
      onAsked?.(results.some(({ flagged }) => flagged) ? 'flagged' : 'ok');
      return results.map(({ flagged, categories }) => (flagged ? namesOf(categories) : undefined));
    } catch (error) {
      const reason = fetchFailure(error);
      onDown?.(reason);
      onAsked?.('failed');
      if (onError === 'allow') return undefined;
      throw new ModerationDownError(reason, { cause: error });
    }
  }

  private async post(input: readonly Input[]): Promise<readonly Verdict[]> {
    const { url, key, timeoutMs = 5_000 } = this.settings;
    const headers = {
      'content-type': 'application/json',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    };
    const asked = JSON.stringify({ model: 'omni-moderation-latest', input });
    const answer = await postBytes(url, asked, { headers, timeoutMs, mostBytes });
    const { results } = JSON.parse(answer.toString()) as { results?: unknown };
    const isVerdict = (each: unknown): each is Verdict => typeof (each as Verdict | null)?.flagged === 'boolean';
    if (Array.isArray(results) && results.length === input.length && results.every(isVerdict)) return results;
    throw new Error(`its answer has no "results" with "flagged" for each of ${input.length} inputs`);
  }
}

/** The names of what was found: a caller reads them, and the audit keeps them. */
function namesOf(categories: unknown): string[] {
  if (categories === null || typeof categories !== 'object' || Array.isArray(categories)) return [];
  const names = Object.entries(categories).flatMap(([name, isFound]) => (isFound === true ? name : []));
  return names.filter((name) => /^[\p{L}\p{N}_/ -]{1,100}$/u.test(name)).slice(0, mostNames);
}
