import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import { createDataSource } from '@app/database';
import { JsonLogger } from '@app/observability';
import { Transactions } from '@app/queue';
import { openImageStorage } from '@app/storage';
import { StoredFiles } from '../../../../apps/api/src/files/stored-files';
import { UploadedPicturesSweeper } from '../../../../apps/api/src/uploads/uploaded-pictures.sweeper';
import { smallPicture } from '../../../support/small-picture';
import { keysIn } from '../../../support/stored-objects';
import type { Site } from '../../site';
import { judge, usualPatienceMs } from './first-key';
import { hostilePictures, hostileUrls } from './hostile-pictures';
import { neighbourRow } from './neighbour-row';
import { Random } from './shapes';

const [files, urls] = [60, 40];
const dayMs = 24 * 3_600_000;
/** On a busy machine each file may be read for two minutes, at low priority, and waits for the one before it. */
const busyPatienceMs = 300_000;

/** Files that are no ordinary pictures, and URLs that lead where nobody may look. */
export const pictures = neighbourRow({
  name: 'pictures',
  title: '100 hostile pictures and addresses of them',
  async prepare({ site, size, first }) {
    const seed = Number(process.env.TORTURE_SEED ?? randomInt(2 ** 31));
    const random = new Random(seed);
    const canary = await startCanary(site);
    const sent = await hostilePictures(random, files);
    const addresses = hostileUrls(random, canary.port, urls);
    const plain = await smallPicture();
    const ends = new Map<string, number>();
    const patienceMs = size === 'short' ? busyPatienceMs : usualPatienceMs;
    const upload = async (name: string, body: Buffer): Promise<string | undefined> => {
      const headers = { 'content-type': 'application/octet-stream' };
      const answer = await first.send({ method: 'POST', path: '/v1/uploads', body, headers, patienceMs });
      const end = `${answer.status} ${/"code":"(\w+)"/.exec(answer.text)?.[1] ?? ''}`.trim();
      ends.set(end, (ends.get(end) ?? 0) + 1);
      const problem = judge(answer);
      return problem && `${name}: ${problem}`;
    };
    const notes: Record<string, number | string> = { seed };
    const isLong = size === 'long';
    const rate = { atOnce: 2, everyMs: 250 };
    return {
      lastsMs: isLong ? 30_000 : 6_000,
      harmless: { name: 'small pictures', ...rate, send: () => upload('a small picture', plain) },
      hostile: [
        {
          name: 'hostile pictures',
          ...rate,
          send: (turn) => upload(sent[turn % files].name, sent[turn % files].file),
        },
        {
          name: 'hostile addresses',
          ...rate,
          send: async (turn) => {
            const image = addresses[turn % urls];
            const body = Buffer.from(JSON.stringify({ prompt: 'a star', model: 'shapes', steps: 2, image }));
            const problem = await first.expectRefusal({ method: 'POST', path: '/v1/sd/text-to-image', body });
            return problem && `${image}: ${problem}`;
          },
        },
      ],
      mayFail: /^The picture in `image` /,
      check: async () => {
        notes['uploads end with'] = [...ends].map(([end, count]) => `${count} x ${end}`).join(', ');
        return problemsOf(canary.hits(), await leftAfterADay(site));
      },
      notes,
    };
  },
});

const problemsOf = (hits: number, left: readonly string[]): string[] => [
  ...(hits > 0 ? [`a private address was asked ${hits} times`] : []),
  ...(left.length > 0 ? [`left on the disk after a day: ${left.slice(0, 3).join(', ')}`] : []),
];

/** Counts who comes to an address that nobody may ask. */
async function startCanary(site: Site): Promise<{ port: number; hits: () => number }> {
  let hits = 0;
  const server = createServer((_, response) => {
    hits++;
    response.end('a secret');
  });
  server.listen(0);
  await once(server, 'listening');
  site.finally(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, hits: () => hits };
}

/** Files that uploads leave when a sweep comes a day later. */
async function leftAfterADay(site: Site): Promise<string[]> {
  const storage = openImageStorage(loadConfig({ ...site.env, DATA_DIR: site.dataDir }));
  const dataSource = await createDataSource(site.databaseUrl, { poolSize: 2 }).initialize();
  const logger = new JsonLogger('torture', 'silent');
  try {
    const stored = new StoredFiles(dataSource, storage, logger);
    const sweeper = new UploadedPicturesSweeper(dataSource, new Transactions(dataSource), stored, logger);
    await sweeper.sweep(Date.now() + dayMs + 60_000);
  } finally {
    await dataSource.destroy();
  }
  const coming = await readdir(join(site.dataDir, 'uploads')).catch(() => []);
  return [...(await keysIn(storage, 'uploads')), ...coming];
}
