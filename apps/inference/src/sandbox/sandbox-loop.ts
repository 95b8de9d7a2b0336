import { type DrawingTask, FinetunePrompt, Generation, type Metadata, readSandboxOrder } from '@app/domain';
import { Tasks, Trainings } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClaimingLoop, ClaimingParts } from '../drawing/claiming-loop';
import { DrawingLock } from '../drawing/drawing-lock';
import { DrawingService } from '../drawing/drawing.service';
import { OwnerShares } from '../drawing/owner-shares';
import { ProgressPublisher } from '../drawing/progress-publisher';
import { SourcePictures } from '../drawing/source-pictures';
import { TaskRunner } from '../drawing/task-runner';
import { TrainingStore } from '../training/training-store';
import { PictureStore } from '../pictures/picture-store';
import { SandboxEngine, sandboxName } from './sandbox-engine';
import { SandboxTraining } from './sandbox-training';

/** Tasks that are drawn, or wait as they asked, at once. Some are left for keys that have none yet. */
const slots = 64;

/**
 * Draws, and pretends to train, the tasks of sandbox keys with the code for all others, but without a slot of an
 * engine.
 */
@Injectable()
export class SandboxLoop extends ClaimingLoop {
  private readonly lock = new DrawingLock();
  private readonly drawings: DrawingService;
  private readonly training: SandboxTraining;

  constructor(
    parts: ClaimingParts,
    private readonly dataSource: DataSource,
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    runner: TaskRunner,
    pictures: PictureStore,
    progress: ProgressPublisher,
    sources: SourcePictures,
    store: TrainingStore,
  ) {
    super(parts, new OwnerShares(slots));
    const source = { key: sandboxName, name: sandboxName, folder: '', hash: '' };
    const resolved = { source, adapters: [], servedBy: sandboxName, plainUpscaler: sandboxName, refusedOn: [] };
    const models = { resolve: async () => resolved, errorAfterRefusal: async (error: Error) => error };
    // No model draws its pictures, so nobody looks at them.
    const moderation = { isOn: false, flags: async () => undefined };
    this.drawings = new DrawingService(runner, tasks, models, pictures, moderation, progress, sources, parts.logger);
    this.training = new SandboxTraining(dataSource, runner, trainings, store, progress);
  }

  protected async claim(): Promise<boolean> {
    if (!this.mayBegin || !(await this.mayClaim())) return false;
    const wanted = { sandbox: true, except: this.shares.full };
    const task = (await this.mayDraw()) ? await this.tasks.claim(wanted) : undefined;
    if (task) this.track(task, this.draw(task), this.shares.take(task.ownerId));
    const training = this.mayBegin ? await this.trainings.claim(wanted) : undefined;
    if (training)
      this.track(training, this.training.run(training, this.shutdown.signal), this.shares.take(training.ownerId));
    return task !== undefined || training !== undefined;
  }

  private get mayBegin(): boolean {
    return this.shares.hasFree && !this.lock.isTakenAlone;
  }

  private async draw(task: DrawingTask): Promise<void> {
    const { order } = readSandboxOrder(await this.metadataOf(task));
    const engine = new SandboxEngine({ ...order, createdAt: task.createdAt, promptChunks: task.promptChunks ?? 1 });
    const slot = { engineFor: () => engine, giveBack: () => undefined, lock: this.lock };
    await this.drawings.run(task, slot, this.shutdown.signal);
  }

  private async metadataOf({ id, kind }: DrawingTask): Promise<Metadata | null> {
    const record = kind === 'generation' ? Generation : FinetunePrompt;
    const found = await this.dataSource.manager.findOneBy<Generation | FinetunePrompt>(record, { id });
    return found?.metadata ?? null;
  }
}
