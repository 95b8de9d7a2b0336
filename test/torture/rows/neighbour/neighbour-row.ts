import { setTimeout as delay } from 'node:timers/promises';
import { audit, comeToRest } from '../../audit';
import { type Outcome, quantile, type Row, type Size } from '../../row';
import { preload, type RunningApi, type Site } from '../../site';
import { FirstKey } from './first-key';
import { pooled, type Samples, SecondKey } from './second-key';

/** How much slower the 99th percentile of the GETs may be than with harmless requests. */
const p99LimitMs = 150;
/** How much longer a picture may take than alone. */
const pictureLimit = 3;
const memoryLimitBytes = 100 * 2 ** 20;
/** In the short form, which runs on busy machines, only a hung service is slow. */
const grossMs = 20_000;
const endPatienceMs = 30_000;
/** A longer round of hostile loads is not repeated. */
const longRoundMs = 30_000;

/** Requests that the first key repeats, at a limited rate. */
export interface Load {
  name: string;
  /** Number of parallel senders. Each waits for its response before it sends again. */
  atOnce: number;
  /** Shortest interval between two requests of a sender. */
  everyMs: number;
  /** Sends once; returns a problem, if any. */
  send: (turn: number) => Promise<string | undefined>;
}

/** Requests of one hostile key, and what a harmless one would send instead. */
export interface Attack {
  harmless: Load;
  hostile: Load[];
  /** Duration of each hostile load, each time; 10 s by default, and 1.5 s in the short form. */
  lastsMs?: number;
  /** A check of this scenario only, at the end; returns what is wrong. */
  check?: () => Promise<string[]>;
  notes?: Outcome['notes'];
}

export interface NeighbourRow {
  name: string;
  title: string;
  /** Variables for the api and the worker. */
  env?: Record<string, string>;
  /** Runs before the api starts. @returns why the scenario must be skipped */
  before?: (site: Site) => Promise<string | undefined>;
  prepare: (place: Place) => Promise<Attack>;
}

/** The environment of an attack. */
export interface Place {
  site: Site;
  size: Size;
  api: RunningApi;
  first: FirstKey;
  second: Awaited<ReturnType<Site['newCaller']>>;
}

/** A scenario in which one key is hostile and another must not notice. */
export function neighbourRow({ name, title, env = {}, before, prepare }: NeighbourRow): Row {
  const needsOwnService = before !== undefined || Object.keys(env).length > 0;
  return {
    name: `neighbour-${name}`,
    group: 'neighbour',
    title,
    ...(!needsOwnService && { sharedSite: 'neighbours' }),
    async run(site, size) {
      const skipped = await before?.(site);
      if (skipped) return audit(site, { skipped });
      const api = await site.anyApi({ env, nodeOptions: preload('collect.cjs') });
      await site.anyWorkers(1, { env });
      const first = new FirstKey(api.url, await site.newCaller(api), site.ledger);
      const second = await site.newCaller(api);
      const neighbour = await SecondKey.start(site, api, second, size);
      const attack = await prepare({ site, size, api, first, second });
      const found = await measure(neighbour, attack, api, size);
      const { problems, notes } = judgeFigures(found, size);
      problems.push(...found.problems);
      if (!(await isAlive(api))) {
        // A hung service shows nothing more, and would never come to rest.
        return { ...(await audit(site, { notes })), problems: [...problems, 'the api is silent after it'] };
      }
      problems.push(...((await attack.check?.()) ?? []), ...(await endWell(site, api)));
      return audit(site, { problems, notes: { ...notes, ...attack.notes } });
    },
  };
}

/** Sends until the time is over, and waits for the responses. Each problem is reported once. */
export async function runLoad({ name, atOnce, everyMs, send }: Load, lastsMs: number): Promise<string[]> {
  const problems = new Set<string>();
  const deadline = performance.now() + lastsMs;
  let turn = 0;
  const one = async (index: number): Promise<void> => {
    // They do not all begin at the same moment.
    await delay((index * everyMs) / atOnce);
    for (let next = performance.now() + everyMs; performance.now() < deadline; next += everyMs) {
      const problem = await send(turn++);
      if (problem && problems.size < 5) problems.add(`${name}: ${problem}`);
      await delay(Math.max(0, Math.min(next, deadline) - performance.now()));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, index) => one(index)));
  return [...problems];
}

/** Measurements, by what the first key did. */
interface Found {
  /** Measured in the long form only, as is the next. */
  alone: Samples;
  harmless: Samples;
  hostile: Map<string, Samples>;
  memory?: { before: number; after: number };
  problems: string[];
}

async function measure(
  neighbour: SecondKey,
  { harmless, hostile, lastsMs }: Attack,
  { process }: RunningApi,
  size: Size,
): Promise<Found> {
  const isLong = size === 'long';
  const stretchMs = lastsMs ?? (isLong ? 10_000 : 1_500);
  const rounds = isLong && hostile.length * stretchMs <= longRoundMs ? 2 : 1;
  const problems = new Set<string>();
  const under = (load: Load, ms: number): Promise<Samples> =>
    neighbour.watch(async () => (await runLoad(load, ms)).forEach((problem) => problems.add(problem)));

  // The first stretch warms the code up and does not count.
  if (isLong) await neighbour.watch(() => delay(3_000));
  const alone = isLong ? [await neighbour.watch(() => delay(5_000))] : [];
  // No limit of the short form is close to what would be measured.
  const calm = isLong ? [await under(harmless, stretchMs)] : [];
  const before = isLong ? await process.heldBytes() : 0;
  const attacked = new Map<string, Samples[]>(hostile.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds && process.isRunning; round++) {
    if (round > 0) {
      alone.push(await neighbour.watch(() => delay(5_000)));
      calm.push(await under(harmless, stretchMs));
    }
    for (const load of hostile) attacked.get(load.name)!.push(await under(load, stretchMs));
  }
  const after = isLong && process.isRunning ? await process.heldBytes() : 0;
  return {
    alone: pooled(alone),
    harmless: pooled(calm),
    hostile: new Map([...attacked].map(([name, samples]) => [name, pooled(samples)])),
    ...(isLong && { memory: { before, after } }),
    problems: [...problems],
  };
}

function judgeFigures(
  { alone, harmless, hostile, memory }: Found,
  size: Size,
): { problems: string[]; notes: Outcome['notes'] } {
  const problems: string[] = [];
  const p99 = ({ getMs }: Samples): number => Math.round(quantile(getMs, 0.99));
  const median = ({ pictureMs }: Samples): number => Math.round(quantile(pictureMs, 0.5));
  const notes: Outcome['notes'] = {
    ...(size === 'long' && {
      'GETs alone p99 ms': p99(alone),
      'picture alone ms': median(alone),
      'GETs harmless p99 ms': p99(harmless),
      'picture harmless ms': median(harmless),
    }),
  };
  for (const [name, samples] of hostile) {
    const of = hostile.size > 1 ? ` (${name})` : '';
    notes[`GETs hostile p99 ms${of}`] = p99(samples);
    notes[`GETs hostile worst ms${of}`] = Math.round(Math.max(0, ...samples.getMs));
    notes[`picture hostile ms${of}`] = median(samples);
    notes[`GETs${of}`] = samples.getMs.length;
    const bad = Object.entries(samples.statuses).filter(([status]) => !/^2/.test(status));
    for (const [status, count] of bad)
      problems.push(
        `${name}: ${count} requests of the other key ${status === '0' ? `had no answer (${[...samples.timeouts, ...samples.broken][0]})` : `got ${status}`}`,
      );
    if (samples.timeouts.length > 0)
      problems.push(`${name}: ${samples.timeouts.length} time-outs of the other key, the first ${samples.timeouts[0]}`);
    if (samples.unfinished > 0) problems.push(`${name}: ${samples.unfinished} pictures of the other key did not come`);
    const limitMs = size === 'long' ? p99(harmless) + p99LimitMs : grossMs;
    if (p99(samples) > limitMs)
      problems.push(`${name}: p99 of the GETs is ${p99(samples)} ms, and may be ${limitMs} ms`);
    if (size === 'long' && median(samples) > pictureLimit * median(alone))
      problems.push(`${name}: a picture takes ${median(samples)} ms, alone ${median(alone)} ms`);
    if (samples.pictureMs.length === 0) problems.push(`${name}: the other key got no picture`);
  }
  if (memory) {
    notes['memory before MB'] = megabytes(memory.before);
    notes['memory after MB'] = megabytes(memory.after);
    if (memory.after > memory.before + memoryLimitBytes)
      problems.push(`memory went from ${megabytes(memory.before)} to ${megabytes(memory.after)} MB`);
  }
  return { problems, notes };
}

async function isAlive(api: RunningApi): Promise<boolean> {
  if (!api.process.isRunning) return false;
  const answer = await fetch(`${api.url}/health/live`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
  return answer?.ok ?? false;
}

/**
 * Drawings that are left of the first key do not matter. Then the same process must end when it is told to, after the
 * last row that uses it.
 */
async function endWell(site: Site, { process }: RunningApi): Promise<string[]> {
  await site.query(
    `UPDATE tasks SET status = 'canceled', completed_at = now() WHERE status = 'queued' AND NOT id = ANY ($1)`,
    [[...site.ledger.entries.keys()]],
  );
  const problems = await comeToRest(site);
  if (!site.isLastRow) return problems;
  process.signal('SIGTERM');
  const code = await Promise.race([process.ended, delay(endPatienceMs, 'silence', { ref: false })]);
  // When everything is closed, the framework ends the process by the signal.
  if (code !== 0 && code !== 'SIGTERM') problems.push(`SIGTERM is answered by ${code}`);
  return problems;
}

const megabytes = (bytes: number): number => Math.round(bytes / 2 ** 20);
