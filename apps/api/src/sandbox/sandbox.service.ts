import type { Image, ImageTask, Metadata } from '@app/domain';
import { FinetunePrompt, Generation, limits, newIdentifier, readSandboxOrder } from '@app/domain';
import { JsonLogger } from '@app/logging';
import { heartbeatTimeoutMs, ImageTaskLifeCycle, progressChannel } from '@app/queue';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { IMAGE_STORAGE } from '../storage.token';
import { drawSandboxPicture } from './sandbox-picture';

/** Stands in `served_by` and `upscaler` of what no engine drew. */
export const sandboxName = 'sandbox';

/** Ends the tasks of sandbox keys by the same moves as a worker's: a claim, files, one settlement. */
@Injectable()
export class SandboxService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly lifeCycle: ImageTaskLifeCycle,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly logger: JsonLogger,
  ) {}

  /** @returns `waitMs` when another process holds the task: the same job is to come again after it. */
  async settle(taskId: string): Promise<{ waitMs?: number }> {
    const claim = await this.lifeCycle.claim(taskId);
    if (claim.kind === 'held') return { waitMs: heartbeatTimeoutMs / 2 };
    if (claim.kind === 'settled') return {};
    const { task } = claim;
    const { fail } = readSandboxOrder(await this.metadataOf(task)).order;
    if (fail === undefined) await this.draw(task);
    else await this.lifeCycle.settle(task, { status: 'failed', error: fail });
    this.logger.log('sandbox task settled', { taskId, attempt: task.attempt, failed: fail !== undefined });
    return {};
  }

  private async draw(task: ImageTask): Promise<void> {
    const folder = `${task.id}/${task.attempt}`;
    const images: Omit<Image, 'task' | 'taskId'>[] = [];
    let isOurs = await this.lifeCycle.drawingStarted(task, { servedBy: sandboxName });
    try {
      await this.tellSteps(task);
      for (let index = 0; index < task.numImages && isOurs; index++) {
        const picture = await drawSandboxPicture(task, (task.seed + index) % (limits.seed + 1));
        const { file, extension, ...facts } = picture;
        const storageKey = `${folder}/${index}.${extension}`;
        await this.storage.write(storageKey, file);
        images.push({ id: newIdentifier(), token: newIdentifier(), index, storageKey, bytes: file.length, ...facts });
        isOurs = await this.lifeCycle.heartbeat(task);
      }
      const upscaler = task.highResolution ? sandboxName : null;
      const settlement = { status: 'succeeded', images, upscaler, computeSeconds: 0 } as const;
      isOurs = isOurs && (await this.lifeCycle.settle(task, settlement));
    } catch (error) {
      isOurs = false;
      throw error;
    } finally {
      if (!isOurs) await this.storage.removeAll(folder);
    }
  }

  /** What a worker would tell those who watch, all at once. */
  private async tellSteps({ id, attempt, steps }: ImageTask): Promise<void> {
    await this.dataSource.query(
      `SELECT pg_notify($1, json_build_object('id', $2::text, 'attempt', $3::integer, 'step', step, 'total', $4::integer)::text)
       FROM generate_series(1, $4::integer) step`,
      [progressChannel, id, attempt, steps],
    );
  }

  private async metadataOf({ id, kind }: ImageTask): Promise<Metadata | null> {
    const found = await this.dataSource.manager.findOneBy<Generation | FinetunePrompt>(
      kind === 'generation' ? Generation : FinetunePrompt,
      { id },
    );
    return found?.metadata ?? null;
  }
}
