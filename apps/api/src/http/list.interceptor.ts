import { FairTurns } from '@app/process';
import { FieldProblems, isIdentifier } from '@app/domain';
import { acceptedAfter, PageQueryDto } from '@app/domain/http';
import { type Config, CONFIG } from '@app/config';
import type { Request, Response } from 'express';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { concatMap, type Observable } from 'rxjs';
import { OpenRequests } from '../defence/open-requests';
import { callerOf } from './caller.decorator';
import { Cursors } from './cursors';
import type { List, ListElement } from './list';
import { checkedQuery } from './query';

/**
 * Writes a piece of an answer and waits until the reader has taken the earlier ones.
 * @returns false when the reader has gone: `OpenConnections` closes the connection of one who takes nothing.
 */
export function writePiece(response: Response, piece: string): Promise<boolean> {
  if (response.closed || response.destroyed) return Promise.resolve(false);
  if (response.write(piece)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (isTaken: boolean) => () => {
      response.off('drain', onDrain).off('close', onClose);
      resolve(isTaken);
    };
    const [onDrain, onClose] = [end(true), end(false)];
    response.on('drain', onDrain).on('close', onClose);
  });
}

/** @throws InvalidError for an `after` that is not in this list */
export function refuseAfter(): void {
  const problems = new FieldProblems();
  problems.addParameter('after', acceptedAfter);
  problems.throwIfAny();
}

/** Links to the next page, from a cursor on, in a `Link` header. */
export function linkNext(request: Request, response: Response, publicUrl: string, after: string): void {
  const url = new URL(request.originalUrl, publicUrl);
  url.searchParams.set('after', after);
  response.setHeader('Link', `<${publicUrl}${url.pathname}${url.search}>; rel="next"`);
}

/** Elements of the first batch: a list of at most this many is sent at once, whatever else the key has running. */
const firstBatch = 32;
/**
 * Target size of a batch, as much of it as waits for its reader, and its most elements: one has at most 450 kB, two
 * texts of 32,000 characters, of which JSON writes some in six bytes.
 */
const batchBytes = 512 * 1024;
const largestBatch = 100;
/** Bytes per write; a reader must take each such piece in time. */
const pieceBytes = 64 * 1024;

/**
 * The whole process reads one batch at a time: lists use one connection of the pool, however many there are; keys take
 * turns between batches.
 */
const turns = new FairTurns({ concurrency: 1, keyConcurrency: 1 });

interface ListRequest {
  ownerId: string;
  request: Request;
  response: Response;
  page: PageQueryDto;
}

/**
 * For a route that returns a `List`: the response is the requested page, or everything. The route takes `@Res()`
 * without using it, so that Nest sends no response itself.
 */
export const SendsList = () => UseInterceptors(ListInterceptor);

/**
 * Sends lists: pages at once, complete ones and large pages as a stream that keeps one batch in memory, and no
 * connection while it waits.
 */
@Injectable()
class ListInterceptor implements NestInterceptor {
  constructor(
    private readonly openRequests: OpenRequests,
    private readonly cursors: Cursors,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** @throws what `send` throws */
  intercept(context: ExecutionContext, next: CallHandler<List>): Observable<void> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const listRequest = { ownerId: callerOf(context).id, request, response, page: checkedQuery(request, PageQueryDto) };
    return next.handle().pipe(concatMap((list) => this.send(listRequest, list)));
  }

  /**
   * Sends a page, or without `limit` all that follows `after`.
   * @throws InvalidError for an `after` that is not in the list; TooManyError while the key has a long one running.
   */
  private async send({ ownerId, request, response, page }: ListRequest, list: List): Promise<void> {
    const { limit, after } = page;
    // Nothing is read for a caller who left while waiting for its turn.
    const read = (count: number, place?: number) =>
      turns.run(ownerId, async () => (response.closed ? [] : list.read(count, place)));
    // A cursor is valid in one list only.
    const name = `${ownerId} ${request.path}`;
    const place =
      after === undefined
        ? undefined
        : isIdentifier(after)
          ? await turns.run(ownerId, () => list.seqOf(after))
          : await this.cursors.read(name, after);
    if (after !== undefined && place === undefined) refuseAfter();
    const count = limit ?? firstBatch;
    const { kept, last, isWhole, hasMore } = await readPage(count, (batch, from = place) => read(batch, from));
    if (limit !== undefined && hasMore)
      linkNext(request, response, this.config.publicUrl, await this.cursors.write(name, last));
    response.type('json');
    if (isWhole && (limit !== undefined || !hasMore)) {
      response.send(`[${kept.map(({ json }) => json).join()}]`);
      return;
    }
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    if (limit === undefined)
      this.openRequests.addAndFinish(ownerId, response, 'complete list', () => response.destroy());
    await stream(response, { first: kept, last: limit === undefined ? -Infinity : last }, read);
  }
}

interface Page {
  /** Its first elements, of about `batchBytes`. */
  kept: ListElement[];
  /** Position of its last element. */
  last: number;
  isWhole: boolean;
  /** Whether the list goes on after it. */
  hasMore: boolean;
}

/**
 * Reads a page in batches, so that others get their turn in between. What is not kept is read again when it is sent.
 */
async function readPage(count: number, read: (count: number, place?: number) => Promise<ListElement[]>): Promise<Page> {
  const kept: ListElement[] = [];
  let [left, last, isWhole] = [count, 0, true];
  for (let size = Math.min(count, firstBatch) + 1; ;) {
    const batch = await read(size, left < count ? last : undefined);
    const shown = batch.slice(0, left);
    const fitting = isWhole ? firstOf(shown, batchBytes - bytesOf(kept)) : [];
    kept.push(...fitting);
    isWhole &&= fitting.length === shown.length;
    left -= shown.length;
    last = shown.at(-1)?.seq ?? last;
    const hasMore = batch.length > shown.length;
    if (hasMore || batch.length < size) return { kept, last, isWhole, hasMore };
    size = Math.min(left + 1, nextBatch(batch));
  }
}

const bytesOf = (elements: readonly ListElement[]): number => elements.reduce((sum, { json }) => sum + json.length, 0);

/** The elements up to one with which they have this many bytes. */
function firstOf(elements: readonly ListElement[], bytes: number): ListElement[] {
  let left = bytes;
  const end = elements.findIndex(({ json }) => (left -= json.length) <= 0);
  return end < 0 ? [...elements] : elements.slice(0, end + 1);
}

/** At most twice as many elements as before, because later ones may be larger. */
function nextBatch(batch: readonly ListElement[]): number {
  const bytes = bytesOf(batch) + 1;
  return Math.max(1, Math.min(largestBatch, 2 * batch.length, Math.floor((batchBytes * batch.length) / bytes)));
}

/** Writes batches until the position `last`, or the list or its reader ends. At an error the filter cuts off the response. */
async function stream(
  response: Response,
  { first, last }: { first: ListElement[]; last: number },
  read: (count: number, place: number) => Promise<ListElement[]>,
): Promise<void> {
  let lead = '[';
  for (let [batch, hasMore] = [first, true]; batch.length > 0;) {
    for (let at = 0; at < batch.length;) {
      let piece = '';
      for (; at < batch.length && piece.length < pieceBytes; at++) {
        piece += lead + batch[at].json;
        lead = ',';
      }
      if (!(await writePiece(response, piece))) return;
    }
    const place = batch[batch.length - 1].seq;
    if (!hasMore || place <= last) break;
    const count = nextBatch(batch);
    const found = await read(count, place);
    batch = firstOf(found, batchBytes).filter(({ seq }) => seq >= last);
    hasMore = found.length === count || batch.length < found.length;
  }
  response.end(']');
}
