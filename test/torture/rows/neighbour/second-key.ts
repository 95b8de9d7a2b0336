import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { comeToRest } from '../../audit';
import type { Caller, GenerationBody } from '../../caller';
import type { Size } from '../../row';
import { root } from '../../service-process';
import type { RunningApi, Site } from '../../site';

/** What the process of the second key is told. */
export interface SecondKeyOrder {
  token: string;
  recordUrl: string;
  pictureUrl: string;
  generationsUrl: string;
  /** A GET of the record goes out this often, one of the picture half as often, whether or not those before were answered. */
  everyMs: number;
  /** An answer that takes longer is a time-out. */
  patienceMs: number;
  /** A picture that takes longer does not come. */
  drawPatienceMs: number;
}

/** What the second key saw in one stretch of time. */
export interface Samples {
  getMs: number[];
  /** From the POST to the record's `succeeded`. */
  pictureMs: number[];
  /** Answers by status; 0: none. */
  statuses: Record<string, number>;
  timeouts: string[];
  /** Requests whose connection broke, and how. */
  broken: string[];
  /** Ids of the records it made. */
  drawn: string[];
  /** Pictures that did not come while it waited. */
  unfinished: number;
}

/** The short form runs beside other tests. */
const pace = {
  long: { everyMs: 40, patienceMs: 10_000, drawPatienceMs: 60_000 },
  short: { everyMs: 150, patienceMs: 30_000, drawPatienceMs: 240_000 },
};

/** Samples of several stretches as one. */
export function pooled(all: readonly Samples[]): Samples {
  const statuses: Record<string, number> = {};
  for (const each of all)
    for (const [status, count] of Object.entries(each.statuses)) statuses[status] = (statuses[status] ?? 0) + count;
  return {
    getMs: all.flatMap(({ getMs }) => getMs),
    pictureMs: all.flatMap(({ pictureMs }) => pictureMs),
    timeouts: all.flatMap(({ timeouts }) => timeouts),
    broken: all.flatMap(({ broken }) => broken),
    drawn: all.flatMap(({ drawn }) => drawn),
    unfinished: all.reduce((sum, { unfinished }) => sum + unfinished, 0),
    statuses,
  };
}

/** A harmless caller beside the hostile one: GET of a record, GET of a picture, POST of a picture of two steps, all the while. */
export class SecondKey {
  private constructor(
    private readonly child: ChildProcess,
    private readonly site: Site,
  ) {}

  /** Draws the picture that will be asked for; a worker must be running. */
  static async start(site: Site, api: RunningApi, caller: Caller, size: Size): Promise<SecondKey> {
    const [id] = await caller.createMany(1);
    const problems = await comeToRest(site);
    if (problems.length > 0) throw new Error(problems[0]);
    const generationsUrl = `${api.url}/v1/sd/text-to-image`;
    const { text } = await caller.request('GET', `/v1/sd/text-to-image/${id}`);
    const [pictureUrl] = (JSON.parse(text) as GenerationBody).images;
    const file = join(root, 'dist', 'test', 'torture', 'rows', 'neighbour', 'second-key-process.js');
    const child = fork(file, { execArgv: [] });
    site.finally(async () => child.kill('SIGKILL'));
    // Its end is noticed where its answer is awaited.
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

  /** Measures while `meanwhile` runs. What was promised and answered goes into the ledger. */
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
