import { execFile } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EmbeddedPostgres, migrate } from '@app/database';
import type { Site } from '../../site';
import type { FirstKey } from './first-key';
import { neighbourRow } from './neighbour-row';

const run = promisify(execFile);
/** Space for the database, some pictures and a key's quota. */
const diskMb = 400;
const mbPerKey = 64;
/** Number of simultaneous uploads, which send a part and then almost nothing. */
const uploads = 16;
const partBytes = 24 * 2 ** 20;
/** The sizes that they announce: more than the quota, none, or so little that some fit at once. */
const declarations = [200_000_000, undefined, 12_000_000];
const trickleEveryMs = 1_000;
/** Longer than a sender may be silent. */
const lingerMs = 45_000;

/** Uploads that never end, on the disk of the database and the pictures. */
export const uploadsThatTrickle = neighbourRow({
  name: 'uploads',
  title: 'trickled uploads on a small disk',
  env: { STORAGE_MB_PER_KEY: String(mbPerKey) },
  before: (site) => useSmallDisk(site),
  async prepare({ site, size, first }) {
    const isLong = size === 'long';
    const path = `/v1/finetunes/${await first.make('/v1/finetunes', { name: 'robot', model: 'shapes' })}/weights`;
    const part = Buffer.alloc(partBytes);
    const lastsMs = isLong ? lingerMs : 6_000;
    const ends = new Map<string, number>();
    let mostMb = 0;
    const trickleAll = async (): Promise<string | undefined> => {
      const deadline = performance.now() + lastsMs - 1_000;
      const found = await Promise.all([
        ...Array.from({ length: uploads }, (_, i) =>
          trickle(first, path, part, declarations[i % declarations.length], deadline),
        ),
        (async () => {
          for (; performance.now() < deadline; await delay(250)) mostMb = Math.max(mostMb, await uploadedMb(site));
        })(),
      ]);
      for (const end of found.filter((each) => typeof each === 'string')) ends.set(end, (ends.get(end) ?? 0) + 1);
      const wrong = [...ends.keys()].find((end) => /^(5|0)|without problem/.test(end) || (isLong && end === 'open'));
      return wrong && `an upload ends so: ${wrong}`;
    };
    const notes: Record<string, number | string> = {};
    return {
      lastsMs,
      harmless: {
        name: 'uploads that fit no layer',
        atOnce: 1,
        everyMs: 2_000,
        send: () => first.expectRefusal({ method: 'PUT', path, body: part }),
      },
      hostile: [{ name: 'trickled uploads', atOnce: 1, everyMs: lastsMs, send: trickleAll }],
      check: async () => {
        notes['uploads end with'] = [...ends].map(([end, count]) => `${count} x ${end}`).join(', ');
        notes['uploads on the disk at most MB'] = mostMb;
        const problems = mostMb > mbPerKey + 1 ? [`uploads of one key took ${mostMb} MB of the disk`] : [];
        // Aborted uploads are removed soon after.
        for (const end = Date.now() + 60_000; (await uploadedMb(site)) > 0 && Date.now() < end;) await delay(100);
        const left = await uploadedMb(site);
        return left > 0 ? [...problems, `${left} MB of uploads are left on the disk`] : problems;
      },
      notes,
    };
  },
});

/** Mounts a small file system at the data folder and starts a PostgreSQL of its own there. */
async function useSmallDisk(site: Site): Promise<string | undefined> {
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m,mode=711`, 'tmpfs', site.dataDir]);
  } catch (error) {
    const reason = (error as Error).message.trim().split('\n').at(-1);
    return `this process may not mount a small file system (${reason})`;
  }
  site.finally(() => run('umount', ['-l', site.dataDir]));
  const postgres = await EmbeddedPostgres.start(site.dataDir);
  site.finally(() => postgres.stop());
  await migrate(postgres.url);
  await site.moveTo(postgres.url);
  return undefined;
}

/** The contents of the folder of uploads in progress. */
async function uploadedMb(site: Site): Promise<number> {
  const folder = join(site.dataDir, 'uploads');
  let bytes = 0;
  for (const name of await readdir(folder).catch(() => []))
    bytes += (await stat(join(folder, name)).catch(() => ({ size: 0 }))).size;
  return Math.ceil(bytes / 2 ** 20);
}

/** @returns the response's status and code, or `open` if none came. */
function trickle(
  first: FirstKey,
  path: string,
  part: Buffer,
  declaredBytes: number | undefined,
  deadline: number,
): Promise<string> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${first.caller.token}`,
      ...(declaredBytes && { 'content-length': String(declaredBytes) }),
    };
    const sent = request(first.url + path, { method: 'PUT', headers, agent: new Agent() }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        const isProblem = response.headers['content-type']?.startsWith('application/problem+json') ?? false;
        const code = /"code":"(\w+)"/.exec(text)?.[1] ?? '';
        over(`${response.statusCode} ${code}${isProblem ? '' : ' without problem+json'}`);
      });
      response.on('error', () => undefined);
    });
    const timer = setInterval(() => {
      if (performance.now() > deadline) over('open');
      else if (!sent.destroyed) sent.write('x');
    }, trickleEveryMs);
    const over = (end: string): void => {
      clearInterval(timer);
      resolve(end);
      sent.destroy();
    };
    sent.on('error', () => setImmediate(over, '0 (the connection broke)'));
    sent.write(part.subarray(0, declaredBytes && declaredBytes / 2));
  });
}
