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
/** Target size of a batch, and its most elements; an element has at most 60 kB. */
const batchBytes = 512 * 1024;
const largestBatch = 200;
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
 * Sends lists: pages at once, complete ones as a stream that keeps one batch in memory, and no connection while it
 * waits.
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
    const found = await readPage(count + 1, (batch, from = place) => read(batch, from));
    const shown = found.slice(0, count);
    const hasMore = found.length > count;
    if (limit !== undefined && hasMore)
      linkNext(request, response, this.config.publicUrl, await this.cursors.write(name, shown[count - 1].seq));
    response.type('json');
    if (limit !== undefined || !hasMore) {
      response.send(`[${shown.map(({ json }) => json).join()}]`);
      return;
    }
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    this.openRequests.addAndFinish(ownerId, response, 'complete list', () => response.destroy());
    await stream(response, shown, read);
  }
}

/** Reads a page in batches, so that others get their turn in between. */
async function readPage(
  count: number,
  read: (count: number, place?: number) => Promise<ListElement[]>,
): Promise<ListElement[]> {
  const found: ListElement[] = [];
  for (let size = Math.min(count, firstBatch + 1); size > 0;) {
    const batch = await read(size, found.at(-1)?.seq);
    found.push(...batch);
    if (batch.length < size) break;
    size = Math.min(count - found.length, nextBatch(batch));
  }
  return found;
}

/** At most twice as many elements as before, because later ones may be larger. */
function nextBatch(batch: ListElement[]): number {
  const bytes = batch.reduce((sum, { json }) => sum + json.length, 1);
  return Math.max(1, Math.min(largestBatch, 2 * batch.length, Math.floor((batchBytes * batch.length) / bytes)));
}

/** Writes batches until the list or its reader ends. At an error the filter cuts off the response. */
async function stream(
  response: Response,
  first: ListElement[],
  read: (count: number, place: number) => Promise<ListElement[]>,
): Promise<void> {
  let count = first.length;
  let lead = '[';
  for (let batch = first; batch.length > 0;) {
    for (let at = 0; at < batch.length;) {
      let piece = '';
      for (; at < batch.length && piece.length < pieceBytes; at++) {
        piece += lead + batch[at].json;
        lead = ',';
      }
      if (!(await writePiece(response, piece))) return;
    }
    const place = batch[batch.length - 1].seq;
    if (batch.length < count) break;
    count = nextBatch(batch);
    batch = await read(count, place);
  }
  response.end(']');
}
