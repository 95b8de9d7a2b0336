import { randomInt } from 'node:crypto';
import { readdir } from 'node:fs/promises';
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
import { hostilePictures } from './hostile-pictures';
import { neighbourRow } from './neighbour-row';
import { Random } from './shapes';

const files = 60;
const dayMs = 24 * 3_600_000;
/** On a busy machine each file may be read for two minutes, at low priority, and waits for the one before it. */
const busyPatienceMs = 300_000;

/** Files that are no ordinary pictures. */
export const pictures = neighbourRow({
  name: 'pictures',
  title: '60 hostile pictures',
  async prepare({ site, size, first }) {
    const seed = Number(process.env.TORTURE_SEED ?? randomInt(2 ** 31));
    const random = new Random(seed);
    const sent = await hostilePictures(random, files);
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
      ],
      check: async () => {
        notes['uploads end with'] = [...ends].map(([end, count]) => `${count} x ${end}`).join(', ');
        const left = await leftAfterADay(site);
        return left.length > 0 ? [`left on the disk after a day: ${left.slice(0, 3).join(', ')}`] : [];
      },
      notes,
    };
  },
});

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
