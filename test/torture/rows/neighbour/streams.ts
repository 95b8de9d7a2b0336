import { Agent, type ClientRequest, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { openEvents } from '../../../support/event-source';
import type { Caller } from '../../caller';
import type { FirstKey } from './first-key';
import { insertGenerations } from './insert-generations';
import { neighbourRow } from './neighbour-row';

/** Streams that a key may have open, from the API contract. */
const streamsPerKey = 100;
const batch = 20;
const batchEveryMs = 200;
const answerMs = 60_000;
/** Time for the other key's stream to end, and for closed streams to be noticed. */
const endMs = 60_000;

/** Huge numbers of event streams. */
export const streams = neighbourRow({
  name: 'streams',
  title: '3,300 event streams of one key',
  async prepare({ site, size, first, second }) {
    const count = size === 'long' ? 3_300 : 300;
    // Held by a worker that does not exist, so that its streams stay open.
    const [id] = await insertGenerations(site, first, {
      count: 1,
      task: { status: 'processing', attempt: 1, heartbeat_at: new Date(Date.now() + 3_600_000) },
    });
    const path = `/v1/sd/text-to-image/${id}`;
    const statuses = new Map<number, number>();
    let open: ClientRequest[] = [];
    const agent = new Agent({ maxSockets: Infinity });
    const note = (status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const close = (): void => {
      for (const stream of open) stream.destroy();
      open = [];
    };
    site.finally(async () => close());
    // One turn opens them all, in batches; the next one finds as many as allowed.
    const openMany = async (): Promise<string | undefined> => {
      close();
      await delay(500);
      statuses.clear();
      for (let opened = 0; opened < count; opened += batch, await delay(batchEveryMs))
        for (let i = 0; i < batch; i++) open.push(openStream(first, `${path}/events`, agent, note));
      return judgeAnswers(statuses, count);
    };
    const lastsMs = Math.round((count / batch) * batchEveryMs + 3_000);
    return {
      lastsMs,
      harmless: { name: 'GETs of the record', atOnce: 1, everyMs: lastsMs, send: () => readMany(first, path, count) },
      hostile: [{ name: 'streams', atOnce: 1, everyMs: lastsMs, send: openMany }],
      check: async () => {
        const told = await eventsOf(first.url, second);
        close();
        const again = await statusInTheEnd(
          () => new Promise((resolve) => open.push(openStream(first, `${path}/events`, agent, resolve))),
        );
        close();
        await first.caller.end(id, 'canceled');
        return [
          ...(told.at(-1) === 'terminated' ? [] : [`the other key's stream told ${told.join(', ') || 'nothing'}`]),
          ...(again === 200 ? [] : [`with all streams closed another is answered ${again}`]),
        ];
      },
      notes: { streams: count },
    };
  },
});

/** Asks for the record as often as the other opens streams, a batch at a time. */
async function readMany(first: FirstKey, path: string, count: number): Promise<undefined> {
  for (let asked = 0; asked < count; asked += batch, await delay(batchEveryMs))
    await Promise.all(Array.from({ length: batch }, () => first.send({ method: 'GET', path })));
}

/**
 * Waits for the answers to all of them. @returns what is wrong: as many are accepted as there may be, and the others
 * refused.
 */
async function judgeAnswers(statuses: ReadonlyMap<number, number>, count: number): Promise<string | undefined> {
  const answered = (): number => [...statuses.values()].reduce((sum, times) => sum + times, 0);
  for (const end = Date.now() + answerMs; answered() < count && Date.now() < end;) await delay(100);
  const accepted = statuses.get(200) ?? 0;
  const said = [...statuses].map(([status, times]) => `${times} x ${status || 'nothing'}`).join(', ');
  const isRight = accepted === streamsPerKey && statuses.get(429) === count - accepted;
  return isRight ? undefined : `${count} streams are answered ${said}`;
}

/** Opens a stream every second until it is accepted. @returns the last one's status. */
async function statusInTheEnd(openOne: () => Promise<number>): Promise<number> {
  let status = 0;
  for (const end = Date.now() + endMs; status !== 200 && Date.now() < end;) {
    await delay(1_000);
    status = await openOne();
  }
  return status;
}

/** The events of a picture that the caller has drawn now. */
async function eventsOf(url: string, caller: Caller): Promise<string[]> {
  const made = await caller.create({ steps: 4 });
  const events = await openEvents(`${url}/v1/sd/text-to-image/${made.id}/events`, caller.token);
  const names: string[] = [];
  const stop = setTimeout(() => events.close(), endMs);
  const next = () => events.next().catch(() => undefined);
  for (let event = await next(); event; event = await next()) names.push(event.event);
  clearTimeout(stop);
  return names;
}

function openStream(first: FirstKey, path: string, agent: Agent, onStatus: (status: number) => void): ClientRequest {
  let told = false;
  const tell = (status: number): void => {
    if (!told) onStatus(status);
    told = true;
  };
  const headers = { authorization: `Bearer ${first.caller.token}` };
  const sent = request(first.url + path, { agent, headers }, (response) => {
    tell(response.statusCode ?? 0);
    response.on('error', () => undefined).resume();
  });
  sent.on('error', () => tell(0));
  return sent.end();
}
