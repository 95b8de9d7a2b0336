import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { comeToRest } from '../../audit';
import type { Caller, GenerationBody } from '../../caller';
import type { Size } from '../../row';
import type { RunningApi, Site } from '../../site';

/** The short form runs beside other tests. */
const pace = {
  long: {
    /**
     * Between two GETs of the record; those of the picture are half as often. They do not wait for earlier responses.
     */
    everyMs: 40,
    /** A response that takes longer is a time-out. */
    patienceMs: 10_000,
    /** A picture that takes longer counts as missing. */
    drawPatienceMs: 60_000,
    /** Between two pictures. */
    pauseMs: 200,
    /** Between two polls of a picture that is drawn. */
    pollMs: 25,
  },
  short: { everyMs: 150, patienceMs: 30_000, drawPatienceMs: 240_000, pauseMs: 500, pollMs: 100 },
};

/** Orders to the second key's process. */
export type SecondKeyOrder = Record<'token' | 'recordUrl' | 'pictureUrl' | 'generationsUrl', string> &
  (typeof pace)['long'];

/** Results of the second key in one period. */
export interface Samples {
  getMs: number[];
  /** From the POST to the record's `succeeded`. */
  pictureMs: number[];
  /** Responses by status; 0: none. */
  statuses: Record<string, number>;
  timeouts: string[];
  /** Requests whose connection broke, and how. */
  broken: string[];
  /** Ids of the records it made. */
  drawn: string[];
  /** Pictures that did not come in time. */
  unfinished: number;
}

/** Combines the samples of several periods. */
export function pooled(all: readonly Samples[]): Samples {
  const sum: Samples = { getMs: [], pictureMs: [], statuses: {}, timeouts: [], broken: [], drawn: [], unfinished: 0 };
  for (const each of all) {
    for (const [status, count] of Object.entries(each.statuses))
      sum.statuses[status] = (sum.statuses[status] ?? 0) + count;
    for (const list of ['getMs', 'pictureMs'] as const) sum[list].push(...each[list]);
    for (const list of ['timeouts', 'broken', 'drawn'] as const) sum[list].push(...each[list]);
    sum.unfinished += each.unfinished;
  }
  return sum;
}

/**
 * A harmless caller beside the hostile one: GET of a record, GET of a picture, POST of a picture of two steps, all the
 * time.
 */
export class SecondKey {
  private constructor(
    private readonly child: ChildProcess,
    private readonly site: Site,
  ) {}

  /** Draws the picture for the GETs; a worker must be running. */
  static async start(site: Site, api: RunningApi, caller: Caller, size: Size): Promise<SecondKey> {
    const [id] = await caller.createMany(1);
    const problems = await comeToRest(site);
    if (problems.length > 0) throw new Error(problems[0]);
    const generationsUrl = `${api.url}/v1/sd/text-to-image`;
    const { text } = await caller.request('GET', `/v1/sd/text-to-image/${id}`);
    const [pictureUrl] = (JSON.parse(text) as GenerationBody).images;
    const child = fork(resolve('dist/test/torture/rows/neighbour/second-key-process.js'), { execArgv: [] });
    site.finally(async () => child.kill('SIGKILL'));
    // Its failure is noticed when its result is awaited.
    child.on('error', () => undefined);
    const order: SecondKeyOrder = {
      token: caller.token,
      recordUrl: `${generationsUrl}/${id}`,
      pictureUrl,
      generationsUrl,
      ...pace[size],
    };
    child.send(order);
    return new SecondKey(child, site);
  }

  /** Measures while `meanwhile` runs. Acknowledged requests go into the ledger. */
  async watch(meanwhile: () => Promise<unknown>): Promise<Samples> {
    this.child.send('begin');
    await meanwhile();
    if (!this.child.connected) throw new Error('The process of the second key ended.');
    const answer = once(this.child, 'message');
    this.child.send('end');
    const [samples] = (await answer) as [Samples];
    for (const id of samples.drawn) this.site.ledger.acknowledge(id, false);
    for (const [status, count] of Object.entries(samples.statuses))
      for (let i = 0; i < count; i++) this.site.ledger.answered(Number(status));
    return samples;
  }
}
