import type { DrawingTask } from '@app/domain';
import { type DrawnPicture, type Served, StorageFullError, Tasks } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { crashPoint } from '@app/process';
import { Inject, Injectable } from '@nestjs/common';
import { TaskAbortedError } from '../engine-client/task-errors';
import type { ModelSource, DrawRequest } from '../engine/engine-protocol';
import type { Engine } from '../engine-client/engine';
import { InferenceMetrics } from '../metrics/inference-metrics';
import { PictureStore } from '../pictures/picture-store';
import { FailureService } from './failure.service';
import { ModelResolver } from './model-resolver';
import { parametersOf } from './picture-parameters';
import { PictureSequence } from './picture-sequence';
import { type Loan, Places } from './places';
import { ProgressPublisher } from './progress-publisher';
import { type ReadPictures, SourcePictures } from './source-pictures';
import { withRetries } from './with-retries';
import { StopListener } from './stop-listener';
import { TaskHold } from './task-hold';
import { Upscalers } from './upscalers';

/** The drawer of a task: an engine with a place for it, or what stands in for one. */
export type DrawingLoan = Loan<Pick<Engine, 'device' | 'draw'>> & {
  /** Waits for a place, where the loan has none yet. @throws TaskAbortedError if `signal` aborts before */
  ready?: (signal: AbortSignal) => Promise<void>;
};

/** A drawing, its source, and its place. */
interface Job {
  task: DrawingTask;
  pictures: ReadPictures;
  loan: DrawingLoan;
}

/** Results of a task that succeeds. */
interface Drawn {
  images: DrawnPicture[];
  computeSeconds: number;
  upscaler: string | null;
  served: Served;
}

/** Draws a claimed task and settles it, whatever the outcome. */
@Injectable()
export class DrawingService {
  constructor(
    private readonly tasks: Tasks,
    @Inject(ModelResolver) private readonly models: Pick<ModelResolver, 'resolve' | 'errorAfterRefusal'>,
    @Inject(Upscalers) private readonly upscalers: Pick<Upscalers, 'plainName' | 'find'>,
    private readonly pictures: PictureStore,
    private readonly progress: ProgressPublisher,
    private readonly stops: StopListener,
    private readonly failures: FailureService,
    @Inject(Places) private readonly places: Pick<Places, 'begin'>,
    @Inject(InferenceMetrics) private readonly metrics: Pick<InferenceMetrics, 'drawingEnded'>,
    private readonly logger: JsonLogger,
    @Inject(SourcePictures) private readonly sources: Pick<SourcePictures, 'read'>,
  ) {}

  /**
   * Draws, stores and settles. A failure is settled too, or the task waits for another attempt.
   * @param shutdown aborted when the process has to end: the task is given back
   * @throws when the outcome cannot be written to the database
   */
  async run(task: DrawingTask, loan: DrawingLoan, shutdown: AbortSignal): Promise<void> {
    crashPoint('after-claim');
    const hold = new TaskHold(task, this.tasks, this.stops, shutdown, this.logger);
    // A worker died while it drew this task or one beside it.
    const alone = task.deaths > 0;
    let leave = (): void => undefined;
    try {
      await this.tasks.assertStorable(task.ownerId, task.reservedBytes);
      const pictures = await this.sources.read(task, hold.signal);
      await loan.ready?.(hold.signal);
      leave = await this.places.begin(alone, hold.signal);
      if (alone) await this.markAlone(task, hold);
      // Pictures that were drawn beside others are encoded while the next ones are drawn, alone or not.
      await this.succeed(task, await this.draw({ task, pictures, loan }, hold, alone ? () => undefined : leave), hold);
    } catch (error) {
      loan.giveBack();
      this.metrics.drawingEnded('unfinished');
      await this.failures.handle(task, error, hold);
    } finally {
      leave();
      hold.end();
    }
  }

  /** From here until it is settled or given back, its worker draws nothing else. */
  private async markAlone(task: DrawingTask, hold: TaskHold): Promise<void> {
    if (!(await this.tasks.drawnAlone(task))) this.lost(hold);
    task.drawnAlone = true;
  }

  private lost(hold: TaskHold, computeSeconds = 0): never {
    hold.lose();
    throw new TaskAbortedError('The task is no longer this attempt’s.', computeSeconds);
  }

  private async draw({ task, pictures, loan }: Job, hold: TaskHold, onDrawn: () => void): Promise<Drawn> {
    const model = await this.models.resolve(task);
    const upscaler = task.highResolution ? await this.upscalers.find() : undefined;
    let scheduler = '';
    let enlargedBy = task.highResolution ? this.upscalers.plainName : null;
    const stored = new PictureSequence();
    let served: Served = { servedBy: model.servedBy };
    let computeSeconds = 0;
    this.logger.log('drawing', { taskId: task.id, attempt: task.attempt, model: model.servedBy });
    try {
      const { source, adapters, controls, refusedOn } = model;
      const engine = loan.engineFor({ key: source.key, refusedOn });
      const ended = this.pictures.noteDrawing(task.ownerId, engine.device);
      const drawing = engine.draw({
        owner: task.ownerId,
        model: source,
        adapters,
        request: { ...requestOf(task), ...pictureRequest(task, pictures, controls) },
        signal: AbortSignal.any([hold.signal, stored.failed]),
        ...(upscaler && { upscaler: upscaler.source }),
        onStarted: (started) => {
          scheduler = started.scheduler;
          served = { ...served, promptChunks: started.promptChunks };
          void this.recordStart(task, served, hold);
        },
        onProgress: this.progress.of(task),
        onPicture: (index, picture, upscaled) => {
          if (upscaled && upscaler) enlargedBy = upscaler.label;
          const parameters = parametersOf(task, index, { ...model, pictures, scheduler, upscaler: enlargedBy });
          stored.add(() => this.pictures.save(task, index, picture, parameters, hold.signal));
        },
      });
      const { computeMs } = await drawing.finally(ended).catch(async (error: Error) => {
        throw await this.models.errorAfterRefusal(error, model, engine.device);
      });
      computeSeconds = computeMs / 1000;
      loan.giveBack();
      onDrawn();
      const images = await stored.all();
      crashPoint('after-file-write');
      this.throwIfGivenUp(hold);
      return { images, computeSeconds, upscaler: enlargedBy, served };
    } catch (error) {
      await stored.all().catch(() => undefined);
      await this.discard(task);
      // Of one that was given up while its pictures were encoded, all that drawing them took.
      if (hold.lost && computeSeconds > 0) this.lost(hold, computeSeconds);
      throw error instanceof TaskAbortedError && stored.failed.aborted ? stored.failed.reason : error;
    }
  }

  /** @throws TaskAbortedError if the task was given up while its pictures are encoded and stored */
  private throwIfGivenUp(hold: TaskHold): void {
    if (hold.signal.aborted) throw new TaskAbortedError('The task was given up while its pictures were stored.');
  }

  /**
   * After an error the database may have the pictures or not, so their files stay, and the sweeper removes those that
   * it does not have.
   * @throws TaskAbortedError if the task was given up meanwhile
   */
  private async succeed(task: DrawingTask, drawn: Drawn, hold: TaskHold): Promise<void> {
    crashPoint('before-commit');
    const settle = () => this.tasks.settle(task, { status: 'succeeded', ...drawn }).catch(ifStorageFull);
    const settled = await withRetries(settle, hold.signal);
    if (settled instanceof StorageFullError) {
      await this.discard(task);
      throw Object.assign(settled, { computeSeconds: drawn.computeSeconds });
    }
    if (!settled) {
      await this.discard(task);
      this.lost(hold, drawn.computeSeconds);
    }
    crashPoint('after-commit');
    const { images, computeSeconds } = drawn;
    this.metrics.drawingEnded('succeeded', computeSeconds);
    this.logger.log('succeeded', { taskId: task.id, attempt: task.attempt, images: images.length, computeSeconds });
  }

  /** The pictures do not wait for this, and do not need it: their settlement writes the same. */
  private async recordStart(task: DrawingTask, served: Served, hold: TaskHold): Promise<void> {
    try {
      if (!(await withRetries(() => this.tasks.drawingStarted(task, served)))) hold.lose();
    } catch (error) {
      this.logger.warn('the start was not recorded', { taskId: task.id, reason: (error as Error).message });
    }
  }

  /** The sweeper removes what is left behind here; the original error is what counts. */
  private async discard(task: DrawingTask): Promise<void> {
    await this.pictures
      .discard(task)
      .catch((error: Error) => this.logger.warn('files were left behind', { taskId: task.id, reason: error.message }));
  }
}

/** Another try would end the same. */
function ifStorageFull(error: unknown): StorageFullError {
  if (error instanceof StorageFullError) return error;
  throw error;
}

function requestOf(task: DrawingTask): DrawRequest {
  const { prompt, negativePrompt, cfg, steps, seed, numImages, scheduler, promptWeighting, width, height } = task;
  return {
    prompt,
    negativePrompt,
    guidanceScale: cfg,
    numInferenceSteps: steps,
    seed,
    numImages,
    scheduler,
    promptWeighting,
    width,
    height,
  };
}

/** Fields of a request that come from the pictures of its task. */
function pictureRequest(
  { inputs }: DrawingTask,
  { image, mask, control }: ReadPictures,
  controls: readonly ModelSource[] = [],
): Partial<DrawRequest> {
  return {
    ...(image && { image: image.image, strength: inputs!.strength! }),
    ...(mask && { mask: { width: mask.mask.width, height: mask.mask.height, values: mask.mask.data } }),
    ...(control.length > 0 && {
      control: control.map(({ image: map }, i) => {
        const { scale, start, end } = inputs!.control![i];
        return { controlNet: controls[i], image: map, scale, start, end };
      }),
    }),
  };
}
