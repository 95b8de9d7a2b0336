import { Drawing, FinetunePrompt, type Image, Task } from '@app/domain';
import type { DrawingDto, DrawingQueryDto } from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type SelectQueryBuilder } from 'typeorm';
import { ImageUrls } from '../files/image-urls';
import { filterTasks, type List, listByTime, type TimedPage, type TimedRow } from '../http/list';

/** All statements walk `tasks_account_idx`. */
const rank = `(
  SELECT count(*)::integer FROM tasks twin
  WHERE twin.account_id = task.account_id AND twin.created_at = task.created_at AND twin.id < task.id
)`;
const place = `task.id, task.created_at AS at, ${rank} AS rank`;
const shown = `
  task.kind, prompt.finetune_id AS finetune, coalesce(prompt.prompt, drawing.prompt) AS prompt, task.status,
  task.error, drawing.num_images AS num_generations, drawing.filtered, drawing.width, drawing.height, (
    SELECT json_build_object('token', token, 'storageKey', storage_key)
    FROM images WHERE task_id = task.id AND thumbnail_bytes IS NOT NULL LIMIT 1
  ) AS small`;

type Row = TimedRow &
  Omit<DrawingDto, 'created_at' | 'thumbnail'> & { small: Pick<Image, 'token' | 'storageKey'> | null };

/** Everything that is drawn for a caller. */
@Injectable()
export class DrawingsService {
  constructor(
    @InjectRepository(Task) private readonly tasks: Repository<Task>,
    private readonly urls: ImageUrls,
  ) {}

  list(accountId: string, query: DrawingQueryDto): List {
    return listByTime<Row>(
      (page) => this.read(accountId, query, page),
      (id) => this.drawings(accountId).select(place).andWhere('task.id = :id', { id }).getRawOne<TimedRow>(),
      async ({ at, rank: _, small, ...row }): Promise<DrawingDto> => ({
        ...row,
        thumbnail: small && (await this.urls.ofThumbnail(small)),
        created_at: at.toISOString(),
      }),
    );
  }

  private read(accountId: string, wanted: DrawingQueryDto, { count, at, rank: below }: TimedPage): Promise<Row[]> {
    const { kind, finetune } = wanted;
    const rows = this.drawings(accountId)
      .leftJoin(FinetunePrompt, 'prompt', 'prompt.id = task.id')
      .select(`${place}, ${shown}`)
      .andWhere(`task.created_at <= :at AND (task.created_at < :at OR ${rank} < :below)`, { at, below })
      .orderBy('task.created_at', 'DESC')
      .addOrderBy('task.id', 'DESC')
      .limit(count);
    if (kind) rows.andWhere('task.kind = :kind', { kind });
    if (finetune) rows.andWhere('prompt.finetune_id = :finetune', { finetune });
    filterTasks(rows, wanted);
    return rows.getRawMany<Row>();
  }

  private drawings(accountId: string): SelectQueryBuilder<Task> {
    return this.tasks
      .createQueryBuilder('task')
      .innerJoin(Drawing, 'drawing', 'drawing.id = task.id')
      .where('task.account_id = :accountId', { accountId });
  }
}
