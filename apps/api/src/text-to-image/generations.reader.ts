import type { GenerationRecord } from '@app/domain/http';
import { QueryBatcher, Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { ImageUrls } from '../images/image-urls';

/** A Generation as it is shown, with the URLs of its pictures in their order. */
export interface FoundGeneration {
  generation: GenerationRecord;
  imageUrls: string[];
}

interface Asked {
  ownerId: string;
  id: string;
}

type Task = GenerationRecord['task'];
type Row = Omit<GenerationRecord, 'task'> &
  Omit<Task, 'seed'> & { ownerId: string; seed: string; pictures: [token: string, storageKey: string][] | null };

/** What is shown of a task, by the names of the entity. */
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
 * Record, task and pictures in one round trip. Written by hand because this is what callers ask for most: the three queries and the
 * entities that TypeORM makes of them take several times as long as all the rest of a request.
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
/** The same for one: an array's length decides its plan, so that PostgreSQL makes a new one each time; this one it keeps. */
const findOne = `${columns}
FROM generations generation ${task}
WHERE generation.id = $1 AND generation.owner_id = $2`;

const nameOf = ({ ownerId, id }: Asked): string => `${ownerId} ${id}`;

/** Looks single Generations up; those that are asked for at the same time with one statement. */
@Injectable()
export class GenerationsReader {
  private readonly gathered = new QueryBatcher((asked: readonly Asked[]) => this.read(asked));

  constructor(
    private readonly transactions: Transactions,
    private readonly urls: ImageUrls,
  ) {}

  /** Undefined also for another caller's. */
  async find(ownerId: string, id: string): Promise<FoundGeneration | undefined> {
    const asked = { ownerId, id };
    return this.transactions.isEnclosed ? (await this.read([asked]))[0] : this.gathered.get(asked);
  }

  private async read(asked: readonly Asked[]): Promise<(FoundGeneration | undefined)[]> {
    const [ids, ownerIds] = [asked.map(({ id }) => id), asked.map(({ ownerId }) => ownerId)];
    const statement =
      asked.length === 1
        ? { name: 'find-generation', text: findOne, values: [...ids, ...ownerIds] }
        : { name: 'find-generations', text: findSeveral, values: [ids, ownerIds] };
    const rows = await this.transactions.query<Row>(statement);
    // By both: who asks for another's record at the same moment as its owner must not get it.
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
