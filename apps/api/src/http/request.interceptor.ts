import { type Config, CONFIG } from '@app/config';
import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { finalize, type Observable, tap } from 'rxjs';
import { OpenRequests, type RequestWeight } from '../defence/open-requests';
import { LoopTime, loopTime } from '../defence/loop-time';
import { JsonBody } from '../defence/json-body';
import { idsIn, lightBytes, locationOf, takesFile, weightOf } from './route.decorators';
import { readQuery } from './query';
import { refuseBody } from './body';

/** A body of at most this size is parsed in a fraction of a millisecond, whatever its content. */
const tinyBytes = 1024;
/**
 * After parsing a large body, the event loop is left to others for this many times as long; its checks take as long as
 * its parsing.
 */
const pauseFactor = 2;

/** Large bodies are parsed one at a time in the whole process. */
const largeBodies = new LoopTime(pauseFactor);

/**
 * Runs for every request between the guards and its route. It reads the body first, and then waits for the key's turn,
 * so that no slow sender occupies one. Queries and bodies that the route does not document are refused. Then it parses
 * the body, large ones one after the other with pauses in between. Afterwards it notes the records that the request
 * made, and says where they are. One interceptor for all this, because each one costs time per request.
 */
@Injectable()
export class RequestInterceptor implements NestInterceptor {
  constructor(
    private readonly openRequests: OpenRequests,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** @throws InvalidError for what the route does not take; TooManyError, and what `JsonBody` throws */
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const { apiKey, method } = request;
    if (!apiKey) return next.handle();
    const route = context.getHandler();
    readQuery(route, request);
    const weight = weightOf(route, request);
    const bytes =
      !takesFile(route) && JsonBody.isIn(request) ? await this.read(apiKey.id, request, response, weight) : undefined;
    await this.openRequests.begin(apiKey.id, response, weight);
    if (bytes)
      try {
        request.body = await parsed(apiKey.id, bytes);
        refuseBody(route, request);
      } catch (error) {
        this.openRequests.finish(response);
        throw error;
      }
    const answer = next.handle().pipe(finalize(() => this.finish(response, weight)));
    if (method !== 'POST') return answer;
    return answer.pipe(
      tap((body) => {
        request.createdIds = idsIn(body);
        const location = locationOf(route, body);
        if (location !== undefined) response.setHeader('Location', `${this.config.publicUrl}${location}`);
      }),
    );
  }

  /** A large response takes memory until it is read: it keeps its key's turn until then. */
  private finish(response: Response, weight: RequestWeight): void {
    if (weight === 'heavy' && !response.closed) response.once('close', () => this.openRequests.finish(response));
    else this.openRequests.finish(response);
  }

  /** A few large bodies of a key are read at a time; the others wait at their senders. */
  private read(ownerId: string, request: Request, response: Response, weight: RequestWeight): Promise<Buffer> {
    const read = (): Promise<Buffer> => JsonBody.read(request, response);
    return weight === 'heavy' ? this.openRequests.read(ownerId, read) : read();
  }
}

async function parsed(ownerId: string, bytes: Buffer): Promise<unknown> {
  if (bytes.length <= tinyBytes) return JsonBody.parse(bytes);
  const time = bytes.length <= lightBytes ? loopTime : largeBodies;
  let body: unknown;
  await time.forEach(ownerId, [bytes], () => (body = JsonBody.parse(bytes)));
  return body;
}
