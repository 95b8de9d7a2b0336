import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { createDataSource } from '@app/database';
import { JsonLogger } from '@app/observability';
import { Transactions } from '@app/queue';
import { openImageStorage } from '@app/storage';
import { Trainings } from '@app/tasks';
import { StoredFiles } from '../../../../apps/api/src/files/stored-files';
import { WeightsSweeper } from '../../../../apps/api/src/finetunes/weights.sweeper';
import { startPictureServer } from '../../../support/picture-server';
import { robotPictures, type TrainedJson } from '../../../support/trainings';
import { until } from '../../../support/until';
import type { Caller } from '../../caller';
import type { Site } from '../../site';

/** Long enough for every file to be old. */
const sweepAheadMs = 7_200_000;

/** Serves pictures of a robot. @returns their URLs */
export async function startPictures(site: Site): Promise<string[]> {
  site.env.PICTURES_ALLOW_PRIVATE = 'on';
  const files = robotPictures();
  const served = files.map((file, i) => [`/${i}.png`, file] as const);
  const server = await startPictureServer(Object.fromEntries(served));
  site.finally(() => server.close());
  return served.map(([path]) => server.url + path);
}

/** A caller who has Fine-Tunes trained. */
export class TrainingCaller {
  /** Ids of what was acknowledged and not deleted. */
  readonly ids: string[] = [];

  constructor(
    private readonly site: Site,
    private readonly caller: Caller,
    private readonly urls: readonly string[],
  ) {}

  async train(fields: Record<string, unknown> = {}): Promise<string> {
    const body = { name: 'robot', model: 'shapes', steps: 50, seed: 1, images_url: this.urls, ...fields };
    const { status, text } = await this.caller.request('POST', '/v1/finetunes', body);
    if (status !== 201) throw new Error(`A training is answered ${status}: ${text}`);
    const { id } = JSON.parse(text) as TrainedJson;
    this.ids.push(id);
    return id;
  }

  async get(id: string): Promise<TrainedJson> {
    return JSON.parse((await this.caller.request('GET', `/v1/finetunes/${id}`)).text) as TrainedJson;
  }

  /** @returns the answer's status */
  async end(id: string, kind: 'canceled' | 'deleted'): Promise<number> {
    const path = `/v1/finetunes/${id}`;
    if (kind === 'canceled') return (await this.caller.request('POST', `${path}/cancel`)).status;
    const { status } = await this.caller.request('DELETE', path);
    if (status === 200) this.ids.splice(this.ids.indexOf(id), 1);
    return status;
  }

  /** Waits until one has done so many steps, or is over. */
  reached(id: string, step: number): Promise<boolean> {
    return until(
      async () => {
        const [row] = await this.site.query<{ step: number; isOver: boolean }>(
          `SELECT step, completed_at IS NOT NULL AS "isOver" FROM trainings JOIN tasks USING (id) WHERE id = $1`,
          [id],
        );
        return row.isOver || row.step >= step;
      },
      `a training has done ${step} steps`,
      300_000,
    );
  }
}

/** Faults of trainings when everything has come to rest: their ends, and the files that they leave. */
export async function trainingProblems(
  site: Site,
  callers: readonly TrainingCaller[],
): Promise<{ problems: string[]; swept: number }> {
  const storage = openImageStorage(loadConfig({ ...site.env, DATA_DIR: site.dataDir }));
  const dataSource = await createDataSource(site.databaseUrl, { poolSize: 2 }).initialize();
  const problems: string[] = [];
  try {
    const trainings = new Trainings(new Transactions(dataSource));
    const logger = new JsonLogger('torture', 'silent');
    const sweeper = new WeightsSweeper(dataSource, trainings, new StoredFiles(dataSource, storage, logger), logger);
    const swept = await sweeper.sweep(Date.now() + sweepAheadMs);
    for await (const { key } of storage.list('trainings')) problems.push(`${key} is left`);
    const rows = await site.query<{ id: string; status: string; taskStatus: string; key: string | null }>(
      `SELECT id, finetunes.status, tasks.status AS "taskStatus", weights_key AS key FROM finetunes JOIN tasks USING (id)`,
    );
    const known = new Set(rows.map(({ key }) => key));
    for await (const { key } of storage.list('weights')) if (!known.has(key)) problems.push(`${key} is nobody's`);
    for (const id of callers.flatMap(({ ids }) => ids)) {
      const row = rows.find((each) => each.id === id);
      if (!row) problems.push(`${id} is lost`);
      else if (
        (row.key !== null) !== (row.status === 'ready') ||
        (row.status === 'ready') !== (row.taskStatus === 'succeeded')
      )
        problems.push(`${id} is ${row.status}, its task ${row.taskStatus}, its weights ${row.key}`);
    }
    const uses = await site.query(`SELECT FROM picture_uses JOIN tasks ON task_id = id WHERE kind = 'training'`);
    if (uses.length > 0) problems.push('uploads of trainings that are over are kept');
    return { problems, swept };
  } finally {
    await dataSource.destroy();
  }
}
