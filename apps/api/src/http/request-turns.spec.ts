import type { Writable } from 'node:stream';
import { RequestTurns, servedPerKey, TooManyRequestsError, waitingPerKey } from './request-turns';

describe(RequestTurns.name, () => {
  const response = (): Writable => ({}) as Writable;

  it('serves some requests of a key at a time, those of others meanwhile, and refuses too many', async () => {
    const turns = new RequestTurns();
    const served: Writable[] = [];
    for (let n = 0; n < servedPerKey.heavy; n++) {
      served.push(response());
      await turns.take('a', served[n], 'heavy');
    }
    let isNext = false;
    const next = turns.take('a', response(), 'heavy').then(() => (isNext = true));
    await turns.take('b', response(), 'heavy');
    await turns.take('a', response(), 'light');
    expect(isNext).toBe(false);
    turns.end(served[0]);
    turns.end(served[0]);
    await next;
    const refused = await Promise.race(
      Array.from({ length: waitingPerKey.heavy + 1 }, () =>
        turns.take('a', response(), 'heavy').catch((error: unknown) => error),
      ),
    );
    expect(refused).toBeInstanceOf(TooManyRequestsError);
  });
});
