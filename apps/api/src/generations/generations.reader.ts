import type { GenerationRecord } from '@app/domain/http';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { ImageUrls } from '../files/image-urls';

/** A Generation as shown, with the URLs of its pictures in order. */
export interface FoundGeneration {
  generation: GenerationRecord;
  imageUrls: string[];
}

type Task = GenerationRecord['task'];
type Row = Omit<GenerationRecord, 'task'> &
  Omit<Task, 'seed'> & { seed: string; pictures: [token: string, storageKey: string][] | null };

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
const findStatement = `
SELECT generation.id, generation.webhook, generation.metadata,
  ${Object.entries(taskColumns)
    .map(([property, column]) => `task.${column} AS "${property}"`)
    .join(', ')},
  (SELECT json_agg(json_build_array(token, storage_key) ORDER BY index) FROM images WHERE task_id = task.id) AS pictures
FROM generations generation JOIN image_tasks task ON task.id = generation.id
WHERE generation.id = $1 AND generation.owner_id = $2`;

/** Looks up single Generations. */
@Injectable()
export class GenerationsReader {
  constructor(
    private readonly transactions: Transactions,
    private readonly urls: ImageUrls,
  ) {}

  /** Undefined also for another caller's. */
  async find(ownerId: string, id: string): Promise<FoundGeneration | undefined> {
    const statement = { name: 'find-generation', text: findStatement, values: [id, ownerId] };
    const [row] = await this.transactions.query<Row | undefined>(statement);
    return row && this.present(row);
  }

  private present({ id, webhook, metadata, pictures, ...task }: Row): FoundGeneration {
    return {
      generation: { id, webhook, metadata, task: { ...task, seed: Number(task.seed) } },
      imageUrls: (pictures ?? []).map(([token, storageKey]) => this.urls.of(token, storageKey)),
    };
  }
}
