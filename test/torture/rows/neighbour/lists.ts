import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Site } from '../../site';
import type { FirstKey } from './first-key';
import { neighbourRow } from './neighbour-row';

const path = '/v1/sd/text-to-image';
const metadataBytes = 15_000;
const readers = 6;
/** A JavaScript string is too short for this many rows. */
const hugeRows = 35_000;
/** In each record. */
const mark = '"filling"';
const slowReadMs = 4_000;
const burstEveryMs = 5_000;

/** Complete lists of many large records. */
export const lists = neighbourRow({
  name: 'lists',
  title: 'complete lists of 10,000 large records',
  async prepare({ site, size, first }) {
    const isLong = size === 'long';
    const rows = isLong ? 10_000 : 1_000;
    const pageSize = isLong ? 100 : 20;
    await insertGenerations(site, first, rows);
    const { port } = new URL(first.url);
    const page = async (): Promise<string | undefined> => {
      const { status, text } = await first.send({
        method: 'GET',
        path: `${path}?limit=${pageSize}`,
        onData: () => undefined,
      });
      return status === 200 ? undefined : `a page is answered ${status}: ${text.slice(0, 200)}`;
    };
    const burst = async (): Promise<string | undefined> =>
      (await Promise.all(Array.from({ length: isLong ? 100 : 20 }, page))).find(Boolean);
    const complete = async (): Promise<string | undefined> => {
      const found = await readList(first, rows);
      // A key may read one complete list at a time; more may be rejected.
      return found.status === 429 ? undefined : found.problem;
    };
    return {
      harmless: { name: 'pages', atOnce: readers, everyMs: 1_000, send: page },
      hostile: [
        { name: 'pages in bursts', atOnce: 1, everyMs: burstEveryMs, send: burst },
        { name: 'complete lists', atOnce: readers, everyMs: 1_000, send: complete },
        { name: 'slow readers', atOnce: readers * 4, everyMs: 250, send: () => readSlowly(Number(port), first) },
      ],
      check: async () => {
        const whole = await readAlone(first, rows);
        if (!isLong || whole) return whole ? [whole] : [];
        await insertGenerations(site, first, hugeRows - rows);
        const huge = await readAlone(first, hugeRows);
        return huge ? [huge] : [];
      },
      notes: { records: rows },
    };
  },
});

/** Reads a complete list without keeping it. */
async function readList(first: FirstKey, rows: number): Promise<{ status: number; problem?: string }> {
  let records = 0;
  let rest = '';
  let start = '';
  const { status, whole, elapsedMs } = await first.send({
    method: 'GET',
    path,
    onData: (chunk) => {
      const text = rest + chunk.toString('latin1');
      start ||= text.slice(0, 200);
      for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) records++;
      rest = text.slice(-mark.length + 1);
    },
  });
  if (status !== 200) return { status, problem: `a complete list is answered ${status || 'not at all'}: ${start}` };
  if (!whole || !rest.trimEnd().endsWith(']'))
    return { status, problem: `a list broke off after ${Math.round(elapsedMs)} ms` };
  return { status, ...(records !== rows && { problem: `a list of ${rows} had ${records} records` }) };
}

/** Reads a complete list, while the service may still have to notice that earlier lists were aborted. */
async function readAlone(first: FirstKey, rows: number): Promise<string | undefined> {
  for (const deadline = Date.now() + 60_000; ; await delay(250)) {
    const { status, problem } = await readList(first, rows);
    if (status !== 429 || Date.now() > deadline) return problem;
  }
}

/** Requests a list, reads its beginning and then nothing for a while. */
function readSlowly(port: number, { caller: { token } }: FirstKey): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`),
    );
    const over = (): void => {
      socket.destroy();
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
      resolve(status >= 500 ? `a slow reader is answered ${status}: ${answer.slice(0, 300)}` : undefined);
    };
    socket.once('data', (chunk) => {
      answer = chunk.toString('latin1');
      socket.pause();
    });
    socket.on('error', () => undefined);
    void delay(slowReadMs).then(over);
  });
}

/** Inserts canceled records of the first key into the database, like a year of use. */
async function insertGenerations(site: Site, { caller: { token } }: FirstKey, count: number): Promise<void> {
  await site.query(
    `WITH owner AS (SELECT id FROM api_keys WHERE prefix = $1),
     made AS (
       SELECT left(translate(encode(sha256(random()::text::bytea || n::text::bytea), 'base64'), '+/=', '-__'), 24) AS id
       FROM generate_series(1, $2::int) n),
     made_tasks AS (
       INSERT INTO tasks (id, kind, owner_id, model, cost, status, created_at, completed_at)
       SELECT made.id, 'generation', owner.id, 'shapes', 0.3, 'canceled', now(), now() FROM made, owner),
     made_drawings AS (
       INSERT INTO drawings (id, prompt, cfg, steps, seed, aspect_ratio, high_resolution, num_images)
       SELECT id, 'a red circle', 7.5, 2, 1, 'square', false, 1 FROM made)
     INSERT INTO generations (id, owner_id, metadata)
     SELECT made.id, owner.id, json_build_object('filling', repeat(md5(made.id), $3::int / 32)) FROM made, owner`,
    [token.split('_')[1], count, metadataBytes],
  );
  await site.query('ANALYZE');
}
