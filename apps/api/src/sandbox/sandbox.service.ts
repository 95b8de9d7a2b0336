import type { Image, Metadata } from '@app/domain';
import { FinetunePrompt, Generation, ImageTask, newIdentifier, readSandboxOrder, seedOf } from '@app/domain';
import { IMAGE_STORAGE } from '@app/storage';
import { attemptFolder, heartbeatTimeoutMs, ImageTaskLifeCycle, progressChannel } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { PicturesService } from '../files/pictures.service';
import { StepPublisher } from './step-publisher';

/** Value of `served_by` and `upscaler` for pictures that no engine drew. */
export const sandboxName = 'sandbox';

/** Completes the tasks of sandbox keys with the same moves as a worker: a claim, files, one settlement. */
@Injectable()
export class SandboxService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly lifeCycle: ImageTaskLifeCycle,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly pictures: PicturesService,
    private readonly stepPublisher: StepPublisher,
    private readonly logger: JsonLogger,
  ) {}

  /** The owner of a task; undefined if it no longer exists. */
  async ownerOf(taskId: string): Promise<string | undefined> {
    const task = await this.dataSource.manager.findOne(ImageTask, {
      select: { id: true, ownerId: true },
      where: { id: taskId },
    });
    return task?.ownerId;
  }

  /**
   * @param enqueuedAtMs when its job was made, in milliseconds since the epoch.
   * @returns `waitMs` when the task must take longer, or another process holds it: the same job must
   * come again after that.
   */
  async settle(taskId: string, enqueuedAtMs: number): Promise<{ waitMs?: number }> {
    const claim = await this.lifeCycle.claim(taskId);
    if (claim.kind === 'held') return { waitMs: heartbeatTimeoutMs / 2 };
    if (claim.kind === 'settled') return {};
    const { task } = claim;
    const { fail, delayMs } = readSandboxOrder(await this.metadataOf(task)).order;
    // A job that the sweeper made replaces one that has already waited.
    const isPaced = delayMs > 0 && task.enqueued === 1;
    const waitMs = isPaced ? enqueuedAtMs + delayMs - Date.now() : 0;
    if (waitMs > 0) {
      await this.lifeCycle.drawingStarted(task, { servedBy: sandboxName });
      if (!(await this.lifeCycle.postpone(task, waitMs))) return {};
      this.stepPublisher.add({ ...task, startAt: enqueuedAtMs, endAt: enqueuedAtMs + delayMs });
      return { waitMs };
    }
    if (fail === undefined) await this.draw(task, isPaced ? task.steps : 1);
    else await this.lifeCycle.settle(task, { status: 'failed', error: fail });
    this.logger.log('sandbox task settled', { taskId, attempt: task.attempt, failed: fail !== undefined });
    return {};
  }

  /** @param step the first that was not published before. */
  private async draw(task: ImageTask, step: number): Promise<void> {
    const folder = attemptFolder(task);
    const images: Omit<Image, 'task' | 'taskId'>[] = [];
    let isOurs = await this.lifeCycle.drawingStarted(task, { servedBy: sandboxName });
    // Whether the database may have the pictures, which then stay; the sweeper removes those that it does not have.
    let mayBeSettled = false;
    // Pictures of other keys get their turns between two of these.
    const beat = setInterval(() => void this.lifeCycle.heartbeat(task).catch(() => undefined), heartbeatTimeoutMs / 4);
    try {
      await this.publishSteps(task, step);
      for (let index = 0; index < task.numImages && isOurs; index++) {
        const picture = await this.pictures.drawSandbox(task, seedOf(task.seed, index));
        const { file, extension, ...facts } = picture;
        const storageKey = `${folder}/${index}.${extension}`;
        await this.storage.write(storageKey, file);
        images.push({ id: newIdentifier(), token: newIdentifier(), index, storageKey, bytes: file.length, ...facts });
        isOurs = await this.lifeCycle.heartbeat(task);
      }
      const upscaler = task.highResolution ? sandboxName : null;
      const settlement = { status: 'succeeded', images, upscaler, computeSeconds: 0 } as const;
      mayBeSettled = isOurs;
      if (isOurs) mayBeSettled = await this.lifeCycle.settle(task, settlement);
    } finally {
      clearInterval(beat);
      if (!mayBeSettled) await this.storage.removeAll(folder);
    }
  }

  /** Publishes everything that a worker would, at once. */
  private async publishSteps({ id, attempt, steps }: ImageTask, first: number): Promise<void> {
    await this.dataSource.query(
      `SELECT pg_notify($1, json_build_object('id', $2::text, 'attempt', $3::integer, 'step', step, 'total', $4::integer)::text)
       FROM generate_series($5::integer, $4::integer) step`,
      [progressChannel, id, attempt, steps, first],
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
