import { type Config, CONFIG } from '@app/config';
import {
  type DrawingTaskDto,
  type KeyStorageDto,
  type QueueDto,
  type StorageDto,
  type WaitingTasksDto,
  WorkerDto,
} from '@app/domain/http';
import { heartbeatTimeoutMs, LiveWorkers, uploadLifeSql } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DiskSpace } from '../files/disk-space';

/** Elements of each list: more than an operator reads, few enough to be sent every second. */
const maxRows = 100;

/** A worker without a later sign of life is gone, and its task waits for another. */
const aliveSince = `now() - ${heartbeatTimeoutMs} * interval '1 ms'`;
const isDrawn = `task.status = 'processing' AND NOT task.sandbox AND task.heartbeat_at >= ${aliveSince}`;

/** Each half has an index of its own. */
const waitingTasks = `(
  SELECT owner_id, model, created_at FROM tasks WHERE status = 'queued' AND NOT sandbox
  UNION ALL SELECT owner_id, model, created_at FROM tasks
  WHERE status = 'processing' AND NOT sandbox AND heartbeat_at < ${aliveSince}
) task`;

const countsStatement = `
SELECT (SELECT count(*)::integer FROM ${waitingTasks}) AS queued,
  (SELECT count(*)::integer FROM tasks task WHERE ${isDrawn}) AS processing,
  (SELECT count(*)::integer FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= now()) AS deliveries_due`;

const waitingStatement = `
SELECT waiting.*, coalesce(caller.name, '') AS key_name FROM (
  SELECT owner_id AS key_id, model, count(*)::integer AS queued, min(created_at) AS oldest_at
  FROM ${waitingTasks}
  GROUP BY owner_id, model ORDER BY min(created_at) LIMIT ${maxRows}
) waiting LEFT JOIN api_keys caller ON caller.id = waiting.key_id
ORDER BY waiting.oldest_at, waiting.key_id, waiting.model`;

const drawingStatement = `
SELECT task.id, task.kind, task.owner_id AS key_id, coalesce(caller.name, '') AS key_name, task.model,
  coalesce(drawing.num_images, 0) AS pictures, coalesce(drawing.steps, training.steps) AS steps, task.attempt,
  coalesce(task.claimed_at, task.started_at) AS drawn_since
FROM tasks task LEFT JOIN drawings drawing ON drawing.id = task.id LEFT JOIN trainings training ON training.id = task.id
  LEFT JOIN api_keys caller ON caller.id = task.owner_id
WHERE ${isDrawn}
ORDER BY drawn_since DESC, task.id DESC LIMIT ${maxRows}`;

/** The driver returns large numbers as text. */
const storageStatement = `
SELECT caller.id AS key_id, caller.name AS key_name, caller.max_storage_mb, coalesce(stored.picture_bytes, 0) AS picture_bytes,
  coalesce(stored.weight_bytes, 0) AS weight_bytes, coalesce(stored.record_bytes, 0) AS record_bytes,
  coalesce(stored.reserved_bytes, 0) + coalesce(sending.bytes, 0) AS upload_bytes
FROM api_keys caller
LEFT JOIN storage_use stored ON stored.owner_id = caller.id
LEFT JOIN (
  SELECT owner_id, sum(bytes) AS bytes FROM uploads WHERE renewed_at > now() - ${uploadLifeSql} GROUP BY owner_id
) sending ON sending.owner_id = caller.id`;

const storedTotalStatement = `
SELECT coalesce(sum(picture_bytes), 0) AS picture_bytes, coalesce(sum(weight_bytes), 0) AS weight_bytes,
  coalesce(sum(record_bytes), 0) AS record_bytes, coalesce(sum(upload_bytes), 0) AS upload_bytes FROM (${storageStatement}) stored`;

const storedByKeyStatement = `
SELECT * FROM (${storageStatement}) stored WHERE picture_bytes + weight_bytes + record_bytes + upload_bytes > 0
ORDER BY picture_bytes + weight_bytes + record_bytes + upload_bytes DESC, key_id LIMIT ${maxRows}`;

type Sizes = Record<'picture_bytes' | 'weight_bytes' | 'record_bytes' | 'upload_bytes', string>;
type KeySizes = Sizes & Pick<KeyStorageDto, 'key_id' | 'key_name'> & { max_storage_mb: number | null };

/** State of the service: its queue, its workers and its storage. */
@Injectable()
export class ServiceStateService {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly dataSource: DataSource,
    private readonly workers: LiveWorkers,
    private readonly disk: DiskSpace,
  ) {}

  async queue(): Promise<QueueDto> {
    const [[counts], waiting, drawing] = await Promise.all([
      this.dataSource.query<Omit<QueueDto, 'waiting' | 'drawing'>[]>(countsStatement),
      this.dataSource.query<(Omit<WaitingTasksDto, 'oldest_at'> & { oldest_at: Date })[]>(waitingStatement),
      this.dataSource.query<(Omit<DrawingTaskDto, 'drawn_since'> & { drawn_since: Date })[]>(drawingStatement),
    ]);
    return {
      ...counts,
      waiting: waiting.map((each) => ({ ...each, oldest_at: each.oldest_at.toISOString() })),
      drawing: drawing.map((each) => ({ ...each, drawn_since: each.drawn_since.toISOString() })),
    };
  }

  /** Newest first. */
  async liveWorkers(): Promise<WorkerDto[]> {
    return (await this.workers.reports(maxRows)).map((worker) => WorkerDto.from(worker));
  }

  async storage(): Promise<StorageDto> {
    const [[total], keys, disk] = await Promise.all([
      this.dataSource.query<Sizes[]>(storedTotalStatement),
      this.dataSource.query<KeySizes[]>(storedByKeyStatement),
      this.disk.fullest(),
    ]);
    return {
      ...inNumbers(total),
      disk_free_bytes: disk?.free ?? null,
      disk_total_bytes: disk?.total ?? null,
      keys: keys.map(({ key_id, key_name, max_storage_mb, ...sizes }) => {
        const limitMb = max_storage_mb ?? this.config.storageMbPerKey;
        return { key_id, key_name, ...inNumbers(sizes), limit_bytes: limitMb === 0 ? null : limitMb * 1e6 };
      }),
    };
  }
}

function inNumbers({ picture_bytes, weight_bytes, record_bytes, upload_bytes }: Sizes) {
  return {
    picture_bytes: Number(picture_bytes),
    weight_bytes: Number(weight_bytes),
    record_bytes: Number(record_bytes),
    upload_bytes: Number(upload_bytes),
  };
}
