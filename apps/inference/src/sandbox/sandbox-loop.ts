import { setMaxListeners } from 'node:events';
import { ClockWatch } from '@app/database';
import type { Metadata } from '@app/domain';
import { FinetunePrompt, Generation, ImageTask, readSandboxOrder } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { RecurringService } from '@app/process';
import { fatalCount, ImageTaskLifeCycle, isSilent, silenceUntil } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DrawingGate } from '../drawing/drawing-gate';
import { DrawingService } from '../drawing/drawing.service';
import { FailureService } from '../drawing/failure.service';
import { OwnerPlaces } from '../drawing/owner-places';
import { ProgressPublisher } from '../drawing/progress-publisher';
import { StopListener } from '../drawing/stop-listener';
import { PictureStore } from '../pictures/picture-store';
import { SandboxEngine, sandboxName } from './sandbox-engine';

/** How often it looks for tasks. It costs little: an index has only the open tasks of sandbox keys. */
const intervalMs = 250;
/** Tasks that are drawn, or wait as they asked, at once. Some are left for keys that have none yet. */
const places = 64;
/** Claims after which a task is taken for the death of its workers; each end of a process costs one too. */
const mostAttempts = 2 * fatalCount;

/** The oldest tasks that wait or have lost their worker. Parameters: how many, whose not, the time of `silenceUntil`. */
const dueStatement = `
SELECT id, owner_id AS "ownerId" FROM image_tasks
WHERE sandbox AND owner_id <> ALL ($2::text[])
  AND (status = 'queued' AND (not_before IS NULL OR not_before <= now()) OR status = 'processing' AND ${isSilent('$3')})
ORDER BY created_at LIMIT $1`;

/**
 * Draws the tasks of sandbox keys with the code that draws all others, beside the engines and without a place there.
 * Their rows are all there is to know, so a process that dies leaves its tasks to the others.
 */
@Injectable()
export class SandboxLoop extends RecurringService {
  private readonly owners = new OwnerPlaces(places);
  private readonly drawings: DrawingService;
  private readonly running = new Set<Promise<void>>();
  private readonly shutdown = new AbortController();

  constructor(
    private readonly dataSource: DataSource,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly clock: ClockWatch,
    private readonly failures: FailureService,
    pictures: PictureStore,
    progress: ProgressPublisher,
    stops: StopListener,
    logger: JsonLogger,
  ) {
    super(logger);
    setMaxListeners(0, this.shutdown.signal);
    const source = { key: sandboxName, name: sandboxName, folder: '', hash: '' };
    const models = {
      resolve: async () => ({ source, servedBy: sandboxName, requiresCuda: false, refusedOn: [] }),
      noted: async (error: Error) => error,
    };
    const upscalers = { plainName: sandboxName, find: async () => undefined };
    const metrics = { drawingEnded: () => undefined };
    const gate = new DrawingGate();
    this.drawings = new DrawingService(
      lifeCycle,
      models,
      upscalers,
      pictures,
      progress,
      stops,
      failures,
      gate,
      metrics,
      logger,
    );
    this.repeat({ intervalMs, failure: 'sandbox tasks could not be looked for', work: () => this.look() });
  }

  /** Gives back what is being drawn: it is drawn again in a moment, wherever that is. */
  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    this.shutdown.abort();
    await Promise.all(this.running);
  }

  /** Begins what is due, as far as there are places. */
  async look(): Promise<void> {
    const free = places - this.running.size;
    if (free === 0 || !this.clock.agrees) return;
    const until = silenceUntil(this.clock.contact);
    const due = await this.dataSource.query<Pick<ImageTask, 'id' | 'ownerId'>[]>(dueStatement, [
      free,
      this.owners.full,
      until,
    ]);
    for (const { id, ownerId } of due) {
      if (this.owners.full.includes(ownerId)) continue;
      const claim = await this.lifeCycle.claim(id);
      if (claim.kind === 'claimed') this.begin(claim.task);
    }
  }

  private begin(task: ImageTask): void {
    const giveBack = this.owners.take(task.ownerId);
    const drawing = this.draw(task)
      .catch((error: Error) => this.logger.error('a sandbox task was not settled', { taskId: task.id }, error))
      .finally(() => {
        this.running.delete(drawing);
        giveBack();
      });
    this.running.add(drawing);
  }

  private async draw(task: ImageTask): Promise<void> {
    if (task.attempt > mostAttempts) return this.failures.failAfterWorkerDeaths(task);
    const { order } = readSandboxOrder(await this.metadataOf(task));
    const engine = new SandboxEngine({ ...order, createdAt: task.createdAt, promptChunks: task.promptChunks ?? 1 });
    await this.drawings.run(task, { engineFor: async () => engine, giveBack: () => undefined }, this.shutdown.signal);
  }

  private async metadataOf({ id, kind }: ImageTask): Promise<Metadata | null> {
    const record = kind === 'generation' ? Generation : FinetunePrompt;
    const found = await this.dataSource.manager.findOneBy<Generation | FinetunePrompt>(record, { id });
    return found?.metadata ?? null;
  }
}
