import { createHash } from 'node:crypto';
import { DomainError, IdempotentReply, InvalidError, isIdentifier, limits, UnprocessableError } from '@app/domain';
import { FairTurns } from '@app/process';
import { Transactions } from '@app/queue';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { ArrayContains, type EntityManager, Repository } from 'typeorm';
import type { Request, Response } from 'express';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { requestsPerKey } from '../defence/open-requests';
import { sendContinue } from '../defence/json-body';
import { hashBody } from './receive-file';
import { readContent } from './form';
import { idsIn, takesFile, takesForm, withoutSecrets } from './route.decorators';

/** Replies that are kept under an `Idempotency-Key`. */
@Injectable()
export class KeptReplies {
  constructor(@InjectRepository(IdempotentReply) private readonly replies: Repository<IdempotentReply>) {}

  /** Replaces the kept body by what the request got after its wait; a body that has been deleted is not kept again. */
  async renew(ownerId: string, key: string, body: { id: string }): Promise<void> {
    await this.replies.update({ ownerId, key, recordIds: ArrayContains([body.id]) }, { body: JSON.stringify(body) });
  }
}

/** A reply is replayed for this long. */
export const replayHours = 24;

/**
 * These transactions may wait for one another, each with a connection of the pool of 20: most of all keys, and of one.
 */
const atOnce = { concurrency: 8, keyConcurrency: 2 };

/**
 * Executes a POST with an `Idempotency-Key` once: the reply is stored in the transaction of the work itself, which
 * begins with the first write: both are committed or neither. A repeat gets the first reply; while the first is
 * running, 409; with another body, 422. A reply is deleted with its record. A failed request changes nothing and may be
 * repeated.
 */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  private readonly turns = new FairTurns({ ...atOnce, perKey: requestsPerKey });

  constructor(private readonly transactions: Transactions) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request>();
    const header = request.headers['idempotency-key'];
    if (request.method !== 'POST' || header === undefined || !request.apiKey) return next.handle();
    const key = checked(header);
    return from(this.once(request.apiKey.id, key, context, next));
  }

  private async once(ownerId: string, key: string, context: ExecutionContext, next: CallHandler): Promise<unknown> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<Request>(), http.getResponse<Response>()];
    // Computed only when needed: a rejected request needs none.
    const fingerprint = (): string => fingerprintOf(request.method, request.originalUrl, request.body);
    const { manager } = this.transactions;
    const known = await findReply(manager, ownerId, key);
    if (known && isFresh(known)) {
      // The first request's file is no longer there; the hashes are compared.
      const handler = context.getHandler();
      if (takesForm(handler)) request.body = await hashOfForm(request, response);
      else if (takesFile(handler)) request.body = await hashOfFile(request, response);
      return replay(manager, known, fingerprint(), response);
    }
    const work = async (): Promise<unknown> => {
      const body: unknown = await lastValueFrom(next.handle());
      await manager.insert(IdempotentReply, {
        ownerId,
        key,
        fingerprint: fingerprint(),
        status: response.statusCode,
        body: JSON.stringify(withoutSecrets(context.getHandler(), body)),
        recordIds: recordsOf(request, body),
      });
      return body;
    };
    const first = (inside: EntityManager): Promise<void> => refuseSecond(inside, ownerId, key);
    try {
      return await this.transactions.enclose(work, { turn: () => this.turns.take(ownerId), first });
    } catch (error) {
      if (error instanceof AlreadyRepliedError) return replay(manager, error.reply, fingerprint(), response);
      throw error;
    }
  }
}

class KeyInUseError extends DomainError<'conflict'> {
  constructor(retryAfterSeconds = 1) {
    super('conflict', 'IdempotencyKeyInUse', 'A request with this Idempotency-Key is still running.', {
      retryAfterSeconds,
    });
  }
}

/** Without its body, which may be large: only a request with the same body gets it. */
type KnownReply = Omit<IdempotentReply, 'body' | 'recordIds'>;

function findReply(manager: EntityManager, ownerId: string, key: string): Promise<KnownReply | null> {
  const select = { ownerId: true, key: true, fingerprint: true, status: true, createdAt: true } as const;
  return manager.findOne(IdempotentReply, { select, where: { ownerId, key } });
}

/** Another request with the key finished after this one's check. */
class AlreadyRepliedError extends Error {
  constructor(readonly reply: KnownReply) {
    super('The request has been answered.');
  }
}

/**
 * SHA-256, in hexadecimal, of a request's target and of its body as a JSON value: white space and the order of keys are
 * ignored. The scan of the body has bounded its depth.
 */
export function fingerprintOf(method: string, target: string, body: unknown): string {
  const sorted = (_key: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return createHash('sha256')
    .update(`${method} ${target}\n${JSON.stringify(body, sorted)}`)
    .digest('hex');
}

/** Identifies a form: its fields, and the hash of each file. */
async function hashOfForm(request: Request, response: Response): Promise<Record<string, unknown>> {
  const hashes = new Map<string, string>();
  const fields = await readContent(request, response, async ({ place, content }) => {
    hashes.set(place, await hashBody(content, limits.sentPicture.bytes));
  });
  return { ...fields, ...Object.fromEntries(hashes) };
}

async function hashOfFile(request: Request, response: Response): Promise<{ sha256: string }> {
  sendContinue(request, response);
  return { sha256: await hashBody(request, limits.sentPicture.bytes) };
}

function isFresh({ createdAt }: KnownReply): boolean {
  return createdAt.getTime() > Date.now() - replayHours * 3_600_000;
}

/** @throws KeyInUseError while another request holds the key; AlreadyRepliedError. Deletes an expired reply. */
async function refuseSecond(manager: EntityManager, ownerId: string, key: string): Promise<void> {
  await lockKey(manager, ownerId, key);
  const known = await findReply(manager, ownerId, key);
  if (known && isFresh(known)) throw new AlreadyRepliedError(known);
  if (known) await manager.delete(IdempotentReply, { ownerId, key });
}

function checked(header: string | string[]): string {
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw new InvalidError(
    'IdempotencyKeyInvalid',
    'The Idempotency-Key header must be 1 to 255 visible ASCII characters.',
  );
}

/**
 * Ids in the reply, which is a record or an array of them, and in the path: records made under another are deleted with
 * it.
 */
function recordsOf({ params }: Request, body: unknown): string[] {
  const ids = [...Object.values(params), ...idsIn(body)];
  return [...new Set(ids.filter((id) => typeof id === 'string' && isIdentifier(id)))] as string[];
}

/** @throws KeyInUseError while another request holds the key. The lock ends with the transaction. */
async function lockKey(manager: EntityManager, ownerId: string, key: string): Promise<void> {
  const [{ locked }] = await manager.query<{ locked: boolean }[]>(
    'SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS locked',
    [`idempotency ${ownerId} ${key}`],
  );
  if (!locked) throw new KeyInUseError();
}

/** @throws KeyInUseError if the reply has just been deleted with its record: a retry is a new request. */
async function replay(
  manager: EntityManager,
  { ownerId, key, fingerprint: firstFingerprint, status }: KnownReply,
  fingerprint: string,
  response: Response,
): Promise<unknown> {
  if (firstFingerprint !== fingerprint)
    throw new UnprocessableError(
      'IdempotencyKeyReused',
      'This Idempotency-Key was used with another request: send this one with a new key.',
    );
  const first = await manager.findOne(IdempotentReply, {
    select: { ownerId: true, body: true },
    where: { ownerId, key },
  });
  if (!first) throw new KeyInUseError();
  response.status(status).setHeader('Idempotency-Replayed', 'true');
  return JSON.parse(first.body);
}
