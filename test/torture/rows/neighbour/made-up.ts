import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { smallPicture } from '../../../support/small-picture';
import { type FirstKey, judge } from './first-key';
import { rawShape, sendRaw } from './made-up-bodies';
import { isStrip, madeUpPicture } from './made-up-pictures';
import { madeUpServers, takenLimitBytes } from './made-up-servers';
import { type Load, neighbourRow, type Place } from './neighbour-row';
import { Random } from './shapes';

const perKind = 20;
const atOnce = 8;
const memoryLimitMb = 400;
/** On a busy machine a file may be read for two minutes, at low priority, and waits for the one before it. */
const patienceMs = 300_000;
const uploadPath = '/v1/uploads';

/** Bodies, pictures and servers of pictures that no test has planned. */
export const madeUp = neighbourRow({
  name: 'made-up',
  title: '60 made-up bodies, pictures and servers',
  env: { PICTURES_ALLOW_PRIVATE: 'on' },
  async prepare({ site, size, first, api }) {
    const seed = Number(process.env.TORTURE_SEED ?? randomInt(2 ** 31));
    const random = new Random(seed);
    const plain = await smallPicture();
    const shapes = Array.from({ length: perKind }, (_, i) => rawShape(random, i, first.caller.token));
    const files = Array.from({ length: perKind }, (_, i) => madeUpPicture(random, i));
    const servers = await madeUpServers(random, perKind, await smallPicture('#0f0', 96, 96));
    site.finally(servers.close);
    const lastsMs = size === 'long' ? 10_000 : 1_500;
    const load = (name: string, send: (index: number) => Promise<string | undefined>): Load => ({
      name,
      atOnce: 1,
      everyMs: lastsMs,
      send: () => each(perKind, send),
    });
    const notes: Record<string, number | string> = { seed };
    return {
      lastsMs,
      harmless: load('small pictures', async () => judge(await upload(first, plain))),
      hostile: [
        load('bodies', async (index) => {
          const { name, wire } = shapes[index];
          const status = await sendRaw(first.url, wire);
          return status >= 500 ? `${name}: answered ${status}` : undefined;
        }),
        load('pictures', async (index) => {
          const answer = await upload(first, files[index].file);
          const isTaken = isStrip(files[index]) && answer.status < 400;
          const problem = judge(answer) ?? (isTaken ? 'is taken' : undefined);
          return problem && `${files[index].name}: ${problem}`;
        }),
        load('servers', (index) => drawFrom(first, servers.all[index])),
      ],
      mayFail: /^The picture in `image` /,
      check: async () => {
        const [{ name, bytes }, memoryMb] = [servers.most(), await mostMemoryMb(api)];
        Object.assign(notes, {
          'memory at most MB': memoryMb,
          'taken of a server at most kB': Math.round(bytes / 1_024),
        });
        return [
          ...(memoryMb > memoryLimitMb ? [`the api took ${memoryMb} MB`] : []),
          ...(bytes > takenLimitBytes ? [`${bytes} bytes were taken of a server: ${name}`] : []),
        ];
      },
      notes,
    };
  },
});

/** Some at a time. @returns the first problem */
async function each(count: number, send: (index: number) => Promise<string | undefined>): Promise<string | undefined> {
  const problems: string[] = [];
  const indexes = Array.from({ length: count }, (_, i) => i).values();
  const lane = async (): Promise<void> => {
    for (const index of indexes) {
      const problem = await send(index);
      if (problem) problems.push(problem);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return problems.at(0);
}

const upload = (first: FirstKey, body: Buffer) =>
  first.send({ method: 'POST', path: uploadPath, body, headers: { 'content-type': 'image/png' }, patienceMs });

/** Has a picture drawn, or not, from what such a server sends. @returns what is wrong with its end */
async function drawFrom(first: FirstKey, { name, url }: { name: string; url: string }): Promise<string | undefined> {
  const path = '/v1/sd/text-to-image';
  const made = await first.post(path, { prompt: 'a star', model: 'shapes', steps: 2, image: url });
  if (made.status !== 201) return `${name}: answered ${made.status}`;
  const { id } = JSON.parse(made.text) as { id: string };
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(250)) {
    const { text } = await first.send({ method: 'GET', path: `${path}/${id}` });
    if (/"status":"(succeeded|failed)"/.test(text)) return undefined;
  }
  return `${name}: its record does not end`;
}

/** The most memory that the process has had. */
async function mostMemoryMb({ process: { pid } }: Place['api']): Promise<number> {
  const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')) ?? [];
  return Math.round(Number(kilobytes ?? 0) / 1024);
}
