import { ConflictError, NotFoundError } from '@app/domain';
import type { GenerationDto } from '@app/domain/http';
import { JsonLogger } from '@app/observability';
import { RecurringService } from '@app/process';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Repeatable } from '../http/repeatable';
import { GenerationsService } from './generations.service';

/** Clients that try again by themselves do so within 8 s. */
const repeatMs = 15_000;
/** How often unclaimed Generations are looked for, and how many rows at a time. */
const intervalMs = 2_000;
const batchSize = 100;

/**
 * A row among the kept replies, whose bodies are JSON; its key has a space, as no `Idempotency-Key` has.
 * Parameters: owner, key, fingerprint, id.
 */
const addStatement = `
INSERT INTO idempotent_replies (owner_id, key, fingerprint, status, body, record_ids) VALUES ($1, $2, $3, 0, 'null', ARRAY[$4::varchar])
ON CONFLICT (owner_id, key) DO UPDATE SET
  created_at = now(), record_ids = array_append(idempotent_replies.record_ids, $4::varchar)`;

/** Takes the oldest id. Parameters: owner, key, seconds. */
const takeStatement = `
WITH found AS (
  SELECT record_ids FROM idempotent_replies
  WHERE owner_id = $1 AND key = $2 AND created_at > now() - make_interval(secs => $3) AND record_ids <> '{}' FOR UPDATE
)
UPDATE idempotent_replies SET record_ids = found.record_ids[2:] FROM found WHERE owner_id = $1 AND key = $2
RETURNING found.record_ids[1] AS id, (SELECT account_id FROM api_keys WHERE id = $1) AS "accountId"`;

/** Rows that can no longer be taken. Parameters: seconds, how many. */
const lateStatement = `
SELECT owner_id AS "ownerId", key, record_ids AS ids, (SELECT account_id FROM api_keys WHERE id = owner_id) AS "accountId"
FROM idempotent_replies
WHERE status = 0 AND record_ids <> '{}' AND created_at <= now() - make_interval(secs => $1) ORDER BY created_at LIMIT $2`;

interface Taken {
  id: string;
  accountId: string;
}

interface Late {
  ownerId: string;
  accountId: string;
  key: string;
  ids: string[];
}

/** Parameters: owner, key, id. */
const removeStatement = `
UPDATE idempotent_replies SET record_ids = array_remove(record_ids, $3::varchar) WHERE owner_id = $1 AND key = $2`;

/**
 * Generations whose answer did not reach their caller: its balancer gave up, or its network broke. Official clients
 * repeat such a request by themselves, without an `Idempotency-Key`: the repeat gets the same Generation. One without a
 * repeat is canceled, by whichever process finds its row.
 */
@Injectable()
export class Unanswered extends RecurringService {
  /** Shorter in tests. */
  static repeatMs = repeatMs;

  constructor(
    private readonly dataSource: DataSource,
    private readonly generations: GenerationsService,
    logger: JsonLogger,
  ) {
    super(logger);
    const failure = 'Generations that nobody waits for were not canceled';
    this.repeat({ intervalMs, failure, work: (signal) => this.cancelLate(signal) });
  }

  /** The Generation of an earlier request with the same content, if nobody waits for it. The repeat claims it. */
  async take(ownerId: string, { hasKey, fingerprint }: Repeatable): Promise<GenerationDto | undefined> {
    if (hasKey) return undefined;
    const parameters = [ownerId, keyOf(fingerprint()), Unanswered.repeatMs / 1000];
    const [[found]] = await this.dataSource.query<[Taken[], number]>(takeStatement, parameters);
    if (!found) return undefined;
    return this.generations.findOne(found.accountId, found.id).catch(ifGone);
  }

  /** Keeps a Generation for a repeat of its request. */
  async leave(ownerId: string, { hasKey, fingerprint }: Repeatable, id: string): Promise<void> {
    if (hasKey) return;
    const content = fingerprint();
    await this.dataSource.query(addStatement, [ownerId, keyOf(content), content, id]);
  }

  private async cancelLate(signal: AbortSignal): Promise<void> {
    const late = await this.dataSource.query<Late[]>(lateStatement, [Unanswered.repeatMs / 1000, batchSize]);
    for (const { ownerId, accountId, key, ids } of late)
      for (const id of ids) {
        if (signal.aborted) return;
        await this.generations.cancel(accountId, id).catch(ifGone);
        await this.dataSource.query(removeStatement, [ownerId, key, id]);
      }
  }
}

const keyOf = (fingerprint: string): string => `unanswered ${fingerprint}`;

/** Undefined for one that is deleted or has terminated; other errors are thrown. */
function ifGone(error: unknown): undefined {
  if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
}
