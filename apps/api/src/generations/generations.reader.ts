import { EntityColumns } from '@app/database';
import { Drawing, Generation, Task } from '@app/domain';
import { GenerationDto } from '@app/domain/http';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ImageUrls } from '../files/image-urls';

type Row = Record<string, unknown> & {
  pictures: [token: string, storageKey: string, thumbnailBytes: number | null][] | null;
};

/** Looks up single Generations. */
@Injectable()
export class GenerationsReader {
  private readonly generation: EntityColumns<Generation>;
  private readonly drawing: EntityColumns<Drawing>;
  private readonly task: EntityColumns<Task>;
  private readonly statement: { name: string; text: string };

  constructor(
    dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly urls: ImageUrls,
  ) {
    this.generation = new EntityColumns(dataSource, Generation, 'generation');
    this.drawing = new EntityColumns(dataSource, Drawing, 'drawing');
    this.task = new EntityColumns(dataSource, Task, 'task');
    const text = `
      SELECT ${this.generation.list}, ${this.drawing.list}, ${this.task.list}, (
        SELECT json_agg(json_build_array(token, storage_key, thumbnail_bytes) ORDER BY index) FROM images WHERE task_id = task.id
      ) AS pictures
      FROM generations generation JOIN drawings drawing USING (id) JOIN tasks task USING (id)
      WHERE generation.id = $1 AND generation.account_id = $2`;
    this.statement = { name: 'find-generation', text };
  }

  /** Record, drawing, task and pictures in one prepared statement: this is the most frequent request. */
  async find(accountId: string, id: string): Promise<GenerationDto | undefined> {
    const [row] = await this.transactions.query<Row | undefined>({ ...this.statement, values: [id, accountId] });
    if (!row) return undefined;
    const record = { ...this.generation.read(row), drawing: { ...this.drawing.read(row), task: this.task.read(row) } };
    const pictures = (row.pictures ?? []).map(([token, storageKey, thumbnailBytes]) => ({
      token,
      storageKey,
      thumbnailBytes,
    }));
    return GenerationDto.from(record, await this.urls.shown(pictures));
  }
}
