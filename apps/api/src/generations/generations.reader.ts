import { QueryBatcher } from '@app/database';
import type { GenerationRecord } from '@app/domain/http';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { ImageUrls } from '../files/image-urls';

/** A Generation as shown, with the URLs of its pictures in order. */
export interface FoundGeneration {
  generation: GenerationRecord;
  imageUrls: string[];
}

interface GenerationRequest {
  ownerId: string;
  id: string;
}

type Task = GenerationRecord['task'];
type Row = Omit<GenerationRecord, 'task'> &
  Omit<Task, 'seed'> & { ownerId: string; seed: string; pictures: [token: string, storageKey: string][] | null };

/** The shown columns of a task, by the names of the entity. */
const taskColumns: Readonly<Record<keyof Task, string>> = {
  prompt: 'prompt',
  negativePrompt: 'negative_prompt',
  aspectRatio: 'aspect_ratio',
  model: 'model',
  numImages: 'num_images',
  error: 'error',
  createdAt: 'created_at',
  status: 'status',
  cfg: 'cfg',
  steps: 'steps',
  seed: 'seed',
  scheduler: 'scheduler',
  highResolution: 'high_resolution',
  outputFormat: 'output_format',
  promptWeighting: 'prompt_weighting',
  promptChunks: 'prompt_chunks',
  upscaler: 'upscaler',
  servedBy: 'served_by',
  completedAt: 'completed_at',
};

/**
 * Record, task and pictures in one round trip. Hand-written SQL because this is the most frequent request: TypeORM's
 * three queries and entities take several times as long as the rest of the request.
 */
const columns = `
SELECT generation.id, generation.owner_id AS "ownerId", generation.webhook, generation.metadata,
  ${Object.entries(taskColumns)
    .map(([property, column]) => `task.${column} AS "${property}"`)
    .join(', ')},
  (SELECT json_agg(json_build_array(token, storage_key) ORDER BY index) FROM images WHERE task_id = task.id) AS pictures`;
const task = `JOIN image_tasks task ON task.id = generation.id`;
const findSeveral = `${columns}
FROM unnest($1::varchar[], $2::varchar[]) AS asked (id, owner_id)
JOIN generations generation ON generation.id = asked.id AND generation.owner_id = asked.owner_id
${task}`;
/**
 * Reads one record. With an array PostgreSQL would plan again each time, because its length
 * matters; this plan is reused.
 */
const findOne = `${columns}
FROM generations generation ${task}
WHERE generation.id = $1 AND generation.owner_id = $2`;

const nameOf = ({ ownerId, id }: GenerationRequest): string => `${ownerId} ${id}`;

/** Looks up single Generations; those requested at the same time share one statement. */
@Injectable()
export class GenerationsReader {
  private readonly gathered = new QueryBatcher((asked: readonly GenerationRequest[]) => this.read(asked));

  constructor(
    private readonly transactions: Transactions,
    private readonly urls: ImageUrls,
  ) {}

  /** Undefined also for another caller's. */
  async find(ownerId: string, id: string): Promise<FoundGeneration | undefined> {
    const asked = { ownerId, id };
    return this.transactions.isEnclosed ? (await this.read([asked]))[0] : this.gathered.get(asked);
  }

  private async read(asked: readonly GenerationRequest[]): Promise<(FoundGeneration | undefined)[]> {
    const [ids, ownerIds] = [asked.map(({ id }) => id), asked.map(({ ownerId }) => ownerId)];
    const statement =
      asked.length === 1
        ? { name: 'find-generation', text: findOne, values: [...ids, ...ownerIds] }
        : { name: 'find-generations', text: findSeveral, values: [ids, ownerIds] };
    const rows = await this.transactions.query<Row>(statement);
    // By id and owner: another caller who asks at the same moment as the owner must not get the record.
    const found = new Map(rows.map((row) => [nameOf(row), this.present(row)]));
    return asked.map((each) => found.get(nameOf(each)));
  }

  private present({ id, ownerId: _, webhook, metadata, pictures, ...task }: Row): FoundGeneration {
    return {
      generation: { id, webhook, metadata, task: { ...task, seed: Number(task.seed) } },
      imageUrls: (pictures ?? []).map(([token, storageKey]) => this.urls.of(token, storageKey)),
    };
  }
}
