import type { Writable } from 'node:stream';
import { OpenRequests, servedPerKey, waitingPerKey } from './open-requests';

describe(OpenRequests.name, () => {
  const response = (): Writable => ({}) as Writable;

  it('serves some requests of a key at a time, those of others meanwhile, and refuses too many', async () => {
    const requests = new OpenRequests();
    const served: Writable[] = [];
    for (let n = 0; n < servedPerKey.heavy; n++) {
      served.push(response());
      await requests.begin('a', served[n], 'heavy');
    }
    let isNext = false;
    const next = requests.begin('a', response(), 'heavy').then(() => (isNext = true));
    await requests.begin('b', response(), 'heavy');
    await requests.begin('a', response(), 'light');
    expect(isNext).toBe(false);
    requests.finish(served[0]);
    requests.finish(served[0]);
    await next;
    const refused = await Promise.race(
      Array.from({ length: waitingPerKey.heavy + 1 }, () =>
        requests.begin('a', response(), 'heavy').catch((error: unknown) => error),
      ),
    );
    expect(refused).toMatchObject({ code: 'TooManyRequests' });
  });
});
