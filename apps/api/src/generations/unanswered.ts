import { ConflictError, NotFoundError } from '@app/domain';
import type { GenerationDto } from '@app/domain/http';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Repeatable } from '../http/repeatable';
import { GenerationsService } from './generations.service';

/** Clients that try again by themselves do so within 8 s. */
const repeatMs = 15_000;

/** A row beside the kept replies, which are JSON; no `Idempotency-Key` has a space. Parameters: owner, key, fingerprint, id. */
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
RETURNING found.record_ids[1] AS id`;

/** Takes one id, if it is still there. Parameters: owner, key, id. */
const removeStatement = `
UPDATE idempotent_replies SET record_ids = array_remove(record_ids, $3::varchar)
WHERE owner_id = $1 AND key = $2 AND $3 = ANY (record_ids) RETURNING key`;

/**
 * Generations whose answer did not reach their caller: its balancer gave up, or its network broke. Official clients
 * repeat such a request by themselves, without an `Idempotency-Key`: the repeat gets the same Generation. One that
 * nobody asks for again is canceled.
 */
@Injectable()
export class Unanswered {
  /** Shorter in tests. */
  static repeatMs = repeatMs;

  constructor(
    private readonly dataSource: DataSource,
    private readonly generations: GenerationsService,
    private readonly logger: JsonLogger,
  ) {}

  /** The Generation of an earlier request with the same content, if nobody waits for it; it counts as asked for then. */
  async take(ownerId: string, { hasKey, fingerprint }: Repeatable): Promise<GenerationDto | undefined> {
    if (hasKey) return undefined;
    const parameters = [ownerId, keyOf(fingerprint()), Unanswered.repeatMs / 1000];
    const [[found]] = await this.dataSource.query<[{ id: string }[], number]>(takeStatement, parameters);
    if (!found) return undefined;
    return this.generations.findOne(ownerId, found.id).catch(ifGone);
  }

  /** Keeps a Generation for a repeat of its request, and cancels it when none comes. */
  async leave(ownerId: string, { hasKey, fingerprint }: Repeatable, id: string): Promise<void> {
    if (hasKey) return;
    const [content, key] = [fingerprint(), keyOf(fingerprint())];
    await this.dataSource.query(addStatement, [ownerId, key, content, id]);
    setTimeout(() => {
      this.giveUp(ownerId, key, id).catch((error: Error) =>
        this.logger.warn('a Generation that nobody waits for was not canceled', { id, reason: error.message }),
      );
    }, Unanswered.repeatMs).unref();
  }

  private async giveUp(ownerId: string, key: string, id: string): Promise<void> {
    const [rows] = await this.dataSource.query<[unknown[], number]>(removeStatement, [ownerId, key, id]);
    if (rows.length > 0) await this.generations.cancel(ownerId, id).catch(ifGone);
  }
}

const keyOf = (fingerprint: string): string => `unanswered ${fingerprint}`;

/** It is deleted, or has terminated. */
function ifGone(error: unknown): undefined {
  if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
}
