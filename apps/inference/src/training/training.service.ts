import { once } from 'node:events';
import { type Config, CONFIG } from '@app/config';
import { Finetune, type TrainingTask, usualCaption } from '@app/domain';
import type { TrainingPicture } from '@app/diffusion';
import { type InstalledModel, weightsName } from '@app/model-store';
import { JsonLogger } from '@app/observability';
import { crashPoint } from '@app/process';
import { type TaskHold, Tasks, Trainings } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { DrawingLock } from '../drawing/drawing-lock';
import { ModelResolver } from '../drawing/model-resolver';
import { ProgressPublisher } from '../drawing/progress-publisher';
import { TaskRunner } from '../drawing/task-runner';
import { withRetries } from '../drawing/with-retries';
import { Engines } from '../engine-client/engines';
import { PictureModeration } from '../pictures/picture-moderation';
import { TrainingChild } from './training-child';
import { TrainingPictures } from './training-pictures';
import { TrainingProgress } from './training-progress';
import type { TrainingMessage, TrainingPlan } from './training-protocol';
import { type StoredState, TrainingStore } from './training-store';

/** How long a training that has to end may take for its step and its checkpoint. */
const stopMs = 5_000;

type HashedModel = InstalledModel & { hash: string; key: string };

interface Begun {
  task: TrainingTask;
  finetune: Finetune;
  /** The model that draws with what is trained. */
  model: HashedModel;
  /** The model that is trained: the same, or one that it was made of. */
  trained: HashedModel;
  child: TrainingChild;
  plan: TrainingPlan;
  /** The state that it goes on from, if an earlier attempt has left one. */
  state: StoredState | undefined;
  signal: AbortSignal;
  progress: TrainingProgress;
}

/** Trains the Fine-Tune of a claimed task in a process of its own, and settles it, whatever the outcome. */
@Injectable()
export class TrainingService {
  constructor(
    private readonly runner: TaskRunner,
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    private readonly models: ModelResolver,
    @Inject(PictureModeration) private readonly moderation: Pick<PictureModeration, 'isOn'>,
    private readonly pictures: TrainingPictures,
    private readonly store: TrainingStore,
    private readonly publisher: ProgressPublisher,
    private readonly engines: Engines,
    private readonly dataSource: DataSource,
    private readonly logger: JsonLogger,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * @param lock which one training at a time has, once its pictures are read
   * @param shutdown aborted when the process has to end: the training is given back, with a checkpoint if its step ends
   * soon
   * @throws when the outcome cannot be written to the database
   */
  async run(task: TrainingTask, lock: Pick<DrawingLock, 'begin'>, shutdown: AbortSignal): Promise<void> {
    const over = new AbortController();
    const atEnd: (() => void)[] = [];
    let child: TrainingChild | undefined;
    let lastMoment: NodeJS.Timeout | undefined;
    // One that does not end in time is given back all the same, and goes on from the checkpoint before.
    const stop = (): void => {
      lastMoment = setTimeout(() => over.abort(), child?.stop() ? stopMs : 0);
    };
    shutdown.addEventListener('abort', stop);
    try {
      await this.runner.run(task, over.signal, async (hold) => {
        child = new TrainingChild(hold.signal);
        await this.runIn(child, task, hold, async (bytes) => {
          atEnd.push(await lock.begin(true, hold.signal));
          const { reserved, release } = this.engines.reserve(bytes);
          atEnd.push(release);
          await Promise.race([reserved, once(hold.signal, 'abort')]);
        }).finally(child.kill);
      });
    } finally {
      clearTimeout(lastMoment);
      for (const end of atEnd.reverse()) end();
      shutdown.removeEventListener('abort', stop);
      await this.store.removeIfOver(task.id).catch(() => undefined);
    }
  }

  /** @param begin waits until it may train, with so many bytes */
  private async runIn(
    child: TrainingChild,
    task: TrainingTask,
    hold: TaskHold,
    begin: (bytes: number) => Promise<void>,
  ): Promise<void> {
    const { store, trainings, publisher, logger } = this;
    const showsSamples = (): Promise<boolean> => this.showsSamples(task);
    await this.tasks.assertStorable(task.ownerId, 1);
    const model = await this.models.modelOf(task);
    const trained = await this.models.trainedFor(model);
    const progress = new TrainingProgress(
      task,
      trained.hash,
      hold,
      trainings,
      store,
      { publisher, showsSamples },
      logger,
    );
    try {
      const begun = await this.plan(task, { model, trained, child, progress, signal: hold.signal });
      const pictures = begun.state ? [] : await this.pictures.read(begun);
      await begin(begun.plan.bytes);
      await this.train(begun, pictures, hold);
    } catch (error) {
      await progress.finish();
      hold.usedSeconds = progress.unwritten;
      throw error;
    }
  }

  private async plan(
    task: TrainingTask,
    parts: Pick<Begun, 'model' | 'trained' | 'child' | 'progress' | 'signal'>,
  ): Promise<Begun> {
    const { model, trained, child } = parts;
    const finetune = await this.dataSource.manager.findOneByOrFail(Finetune, { id: task.id });
    const [device] = this.engines.devices;
    const state = await this.store.latest(task.id, trained.hash);
    const plan = await child.plan({
      model: { key: trained.key, name: trained.name, folder: trained.folder, hash: trained.hash },
      drawn: trained.name === model.name ? undefined : { folder: model.folder, training: model.defaults.training },
      device,
      intraOpNumThreads: this.engines.threads,
      pictures: task.imagesUrl.length,
      settings: { steps: task.steps, seed: task.seed, token: finetune.token, initializerToken: nounOf(finetune) },
      memoryBytes: this.engines.memoryBytes,
      drawingBytes: this.drawingBytes(model),
      checkpoint: state?.checkpoint,
      hasSamples: await this.showsSamples(task),
    });
    return { ...parts, task, finetune, plan, state };
  }

  /** Samples are looked at by nobody, so they are not shown where somebody looks at pictures. */
  private async showsSamples({ ownerId }: TrainingTask): Promise<boolean> {
    return !this.moderation.isOn && (await this.models.filterOf(ownerId)) === 'off';
  }

  /** Bytes of the largest model that draws beside it: one that is loaded, or its own, which its Prompts need next. */
  private drawingBytes({ bytes }: InstalledModel): number {
    if (!this.config.workerKinds.includes('drawing')) return 0;
    return Math.max(bytes, ...this.engines.states[0].loaded.map((model) => model.bytes));
  }

  private async train(begun: Begun, pictures: readonly TrainingPicture[], hold: TaskHold): Promise<void> {
    const { task, finetune, model, trained, child, plan, state, signal, progress } = begun;
    signal.throwIfAborted();
    const { token, name } = finetune;
    const samplePrompt = usualCaption(finetune);
    const metadata = { token, name, base_model: weightsName(model), base_sha256: model.hash, seed: String(task.seed) };
    this.logger.log('training', {
      taskId: task.id,
      attempt: task.attempt,
      model: model.name,
      ...(trained.name !== model.name && { trainedOn: trained.name }),
      ...plan,
      from: state?.step,
    });
    const command = state ? { type: 'resume' as const, round: state.round } : { type: 'train' as const, pictures };
    const done = await child.train({ ...command, samplePrompt, metadata }, (message: TrainingMessage) =>
      progress.handle(message),
    );
    signal.throwIfAborted();
    await progress.finish();
    const file = await withRetries(() => this.store.storeWeights(task, done.weights), signal);
    crashPoint('before-commit');
    const computeSeconds = progress.secondsAt(done.computeMs);
    const { kind, vectors, note } = done;
    const weights = { ...file, kind, vectors, note, unmatched: 0, scale: 1, base: weightsName(model) };
    const isSettled = await withRetries(
      () => this.trainings.settle(task, { weights, computeSeconds, note: plan.note }),
      signal,
    );
    crashPoint('after-commit');
    if (isSettled) return this.logger.log('trained', { taskId: task.id, attempt: task.attempt, computeSeconds });
    await this.store.removeAll(file.key);
    hold.lose();
  }
}

/** The word whose meaning a word that is learnt begins with: the last one of the name. */
const nounOf = ({ name }: Finetune): string => name.trim().split(/\s+/).at(-1)!;
