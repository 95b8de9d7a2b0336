import { EventEmitter } from 'node:events';
import type { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JsonLogger } from '@app/observability';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host';
import { firstValueFrom, from, of } from 'rxjs';
import { AnswersWhenDone } from '../http/route.decorators';
import { OpenRequests, servedPerKey } from '../defence/open-requests';
import { preferredWait, WaitInterceptor } from './wait.interceptor';

const waitSeconds = 60;
const presented = { created: 1 };
const stored = { id: 'g', status: 'queued', num_generations: 1 };

class Presenter {
  readonly waitSeconds = waitSeconds;

  begin(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  present(): Promise<object> {
    return Promise.resolve(presented);
  }
}

class Routes {
  @AnswersWhenDone()
  preferred(this: void): void {}

  @AnswersWhenDone(Presenter)
  always(this: void): void {}
}
const { preferred, always } = new Routes();

/** The parts of a response that the interceptor uses. */
class OpenResponse extends EventEmitter {
  readonly closed = false;
  readonly headers = new Map<string, unknown>();

  json(): void {}

  setHeader(name: string, value: unknown): void {
    this.headers.set(name, value);
  }

  get writable(): Writable {
    return this as unknown as Writable;
  }
}

describe(WaitInterceptor.name, () => {
  let requests: OpenRequests;
  let interceptor: WaitInterceptor;
  let findOne: jest.Mock;
  let terminate: () => void;

  beforeEach(() => {
    requests = new OpenRequests();
    findOne = jest.fn().mockResolvedValue({ ...stored, status: 'succeeded' });
    const terminated = new Promise<void>((resolve) => (terminate = resolve));
    interceptor = new WaitInterceptor(
      { findOne } as never,
      { until: () => terminated } as never,
      requests,
      { get: () => new Presenter() } as never,
      { renew: () => Promise.resolve() } as never,
      {} as never,
      new JsonLogger('test', 'silent'),
    );
  });

  function context(route: () => void, response: OpenResponse): ExecutionContext {
    const request = { apiKey: { id: 'a' }, headers: { prefer: `wait=${waitSeconds}` }, body: {} };
    return new ExecutionContextHost([request, response], Routes, route);
  }
  const answer = (route: () => void, response: OpenResponse, next: CallHandler): Promise<unknown> =>
    firstValueFrom(interceptor.intercept(context(route, response), next));

  it('answers with the stored record when it cannot be read after the wait', async () => {
    findOne.mockRejectedValue(new Error('the database is away'));
    const response = new OpenResponse();
    const body = answer(preferred, response, { handle: () => of(stored) });
    terminate();
    expect(await body).toBe(stored);
    expect(response.headers.get('Preference-Applied')).toBe(`wait=${waitSeconds}`);
  });

  it.each([
    ['as preferred', preferred],
    ['always', always],
  ])('is served until the Generation is stored, on a route that waits %s', async (_rule, route) => {
    const response = new OpenResponse();
    await requests.begin('a', response.writable, 'heavy');
    for (let n = 1; n < servedPerKey.heavy; n++) await requests.begin('a', new OpenResponse().writable, 'heavy');
    let store: (record: object) => void = () => undefined;
    const inserted = new Promise<object>((resolve) => (store = resolve));
    const body = answer(route, response, { handle: () => from(inserted) });
    let isServed = false;
    const next = requests.begin('a', new OpenResponse().writable, 'heavy').then(() => (isServed = true));
    await nextTurn();
    expect(isServed).toBe(false);
    store(stored);
    await next;
    terminate();
    expect(await body).toEqual(route === always ? presented : { ...stored, status: 'succeeded' });
  });
});

describe(preferredWait.name, () => {
  it.each([
    ['wait=10', 10],
    ['respond-async, Wait = "7" ; x=1', 7],
    ['wait=60', 60],
    ['wait=3600', 60],
    ['wait=0', undefined],
    ['wait=-1', undefined],
    ['wait=1.5', undefined],
    ['wait', 60],
    ['wait=', 60],
    ['return=minimal', undefined],
    ['', undefined],
    [undefined, undefined],
    [['return=minimal', 'wait=3'], 3],
  ])('reads %j', (header, seconds) => {
    expect(preferredWait(header)).toBe(seconds);
  });
});
