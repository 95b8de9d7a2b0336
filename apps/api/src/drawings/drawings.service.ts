import type { DrawingDto, DrawingQueryDto } from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ImageUrls, type StoredPicture } from '../files/image-urls';
import { type List, listByTime, type TimedRow } from '../http/list';

/** All statements walk `tasks_account_idx`. */
const rank = `(
  SELECT count(*)::integer FROM tasks twin
  WHERE twin.account_id = task.account_id AND twin.created_at = task.created_at AND twin.id < task.id
)`;

/** Parameters: how many, the time and the rank to start before, the account, and what is wanted: null is any. */
const pageStatement = `
SELECT task.kind, task.id, prompt.finetune_id AS finetune, coalesce(prompt.prompt, drawing.prompt) AS prompt, task.status,
  task.error, drawing.num_images AS num_generations, drawing.width, drawing.height, (
    SELECT json_build_object('token', token, 'storageKey', storage_key, 'thumbnailBytes', thumbnail_bytes)
    FROM images WHERE task_id = task.id AND index = 0 AND thumbnail_bytes IS NOT NULL
  ) AS small, task.created_at AS at, ${rank} AS rank
FROM tasks task JOIN drawings drawing ON drawing.id = task.id LEFT JOIN finetune_prompts prompt ON prompt.id = task.id
WHERE task.account_id = $4 AND task.created_at <= $2 AND (task.created_at < $2 OR ${rank} < $3)
  AND ($5::text IS NULL OR task.kind = $5) AND ($6::text IS NULL OR task.status = $6)
  AND ($7::text IS NULL OR prompt.finetune_id = $7)
  AND ($8::timestamptz IS NULL OR task.created_at > $8) AND ($9::timestamptz IS NULL OR task.created_at < $9)
  AND ($10::text IS NULL OR task.end_user = $10)
ORDER BY task.created_at DESC, task.id DESC LIMIT $1`;

const findStatement = `
SELECT task.id, task.created_at AS at, ${rank} AS rank FROM tasks task JOIN drawings USING (id)
WHERE task.id = $1 AND task.account_id = $2`;

type Row = TimedRow & Omit<DrawingDto, 'created_at' | 'thumbnail'> & { small: StoredPicture | null };

/** Everything that is drawn for a caller. */
@Injectable()
export class DrawingsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly urls: ImageUrls,
  ) {}

  list(accountId: string, query: DrawingQueryDto): List {
    const { kind, status, finetune, created_after, created_before, user } = query;
    const wanted = [kind, status, finetune, created_after, created_before, user];
    return listByTime<Row>(
      ({ count, at, rank: below }) => this.dataSource.query(pageStatement, [count, at, below, accountId, ...wanted]),
      async (id) => (await this.dataSource.query<TimedRow[]>(findStatement, [id, accountId])).at(0),
      async ({ at, rank: _, small, ...row }): Promise<DrawingDto> => ({
        ...row,
        thumbnail: small && (await this.urls.shown([small])).thumbnail,
        created_at: at.toISOString(),
      }),
    );
  }
}
