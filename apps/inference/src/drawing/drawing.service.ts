import type { DrawingTask } from '@app/domain';
import { type Served, StorageFullError, type TaskHold, Tasks } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { crashPoint } from '@app/process';
import { Inject, Injectable } from '@nestjs/common';
import type { Engine } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import type { ModelSource, DrawRequest, Mask } from '../engine/engine-protocol';
import type { Ending } from '../metrics/inference-metrics';
import { PictureModeration } from '../pictures/picture-moderation';
import { PictureStore } from '../pictures/picture-store';
import type { DrawingLock } from './drawing-lock';
import type { Slot } from './engine-slots';
import { ModelResolver, type ResolvedModel } from './model-resolver';
import type { ReadMask } from '@app/pictures';
import { parametersOf } from './picture-parameters';
import { PictureSequence } from './picture-sequence';
import { ProgressPublisher } from './progress-publisher';
import { givenPictures, type ReadPictures, SourcePictures } from './source-pictures';
import { TaskRunner } from './task-runner';
import { withRetries } from './with-retries';

/** Where a task is drawn: on an engine with a slot for it, or by what stands in for one; and beside which others. */
export interface DrawingSlot extends Slot<Pick<Engine, 'device' | 'draw'>> {
  lock: DrawingLock;
  /** Waits for the slot, where there is none yet. @throws TaskAbortedError if `signal` aborts before */
  ready?: (signal: AbortSignal) => Promise<void>;
}

interface Drawn extends Awaited<ReturnType<PictureSequence['all']>> {
  computeSeconds: number;
  upscaler: string | null;
  served: Served;
}

/** Draws a claimed task and settles it, whatever the outcome. */
@Injectable()
export class DrawingService {
  constructor(
    private readonly runner: TaskRunner,
    private readonly tasks: Tasks,
    @Inject(ModelResolver) private readonly models: Pick<ModelResolver, 'resolve' | 'errorAfterRefusal'>,
    private readonly pictures: PictureStore,
    @Inject(PictureModeration) private readonly moderation: Pick<PictureModeration, 'isOn' | 'flags'>,
    private readonly progress: ProgressPublisher,
    @Inject(SourcePictures) private readonly sources: Pick<SourcePictures, 'read'>,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * Draws, stores and settles. A failure is settled too, or the task waits for another attempt.
   * @param shutdown aborted when the process has to end: the task is given back
   * @returns how it ended, and the compute seconds if it has succeeded
   * @throws when the outcome cannot be written to the database
   */
  async run(task: DrawingTask, slot: DrawingSlot, shutdown: AbortSignal): Promise<{ ending: Ending; seconds: number }> {
    // A worker died while it drew this task or one beside it.
    const alone = task.deaths > 0;
    let seconds = 0;
    let unlock = (): void => undefined;
    const work = async (hold: TaskHold): Promise<void> => {
      await this.tasks.assertStorable(task.ownerId, task.reservedBytes);
      const pictures = await this.sources.read(task, hold.signal);
      await slot.ready?.(hold.signal);
      unlock = await slot.lock.begin(alone, hold.signal);
      if (alone) await this.markAlone(task, hold);
      const onDrawn = (): void => {
        slot.giveBack();
        // Pictures that were drawn beside others are encoded while the next ones are drawn, alone or not.
        if (!alone) unlock();
      };
      const drawn = await this.draw(task, pictures, { slot, hold, onDrawn });
      await this.succeed(task, drawn, hold);
      seconds = drawn.computeSeconds;
    };
    const ending = await this.runner
      .run(task, shutdown, (hold) => work(hold).finally(() => slot.giveBack()))
      .finally(() => unlock());
    return { ending, seconds };
  }

  /** From here until it is settled or given back, its worker draws nothing else. */
  private async markAlone(task: DrawingTask, hold: TaskHold): Promise<void> {
    if (!(await this.tasks.markDrawnAlone(task))) this.lost(hold);
    task.drawnAlone = true;
  }

  private lost(hold: TaskHold): never {
    hold.lose();
    throw new TaskAbortedError('The task is no longer this attempt’s.');
  }

  private async draw(
    task: DrawingTask,
    pictures: ReadPictures,
    { slot, hold, onDrawn }: { slot: DrawingSlot; hold: TaskHold; onDrawn: () => void },
  ): Promise<Drawn> {
    const model = await this.models.resolve(task);
    this.logger.log('drawing', { taskId: task.id, attempt: task.attempt, model: model.servedBy });
    const { source, adapters, controls, refusedOn, upscaler, safety } = model;
    let scheduler = '';
    let enlargedBy = task.highResolution ? model.plainUpscaler : null;
    const stored = this.sequenceOf(task, model, pictures, hold);
    let served: Served = { servedBy: model.servedBy };
    try {
      const engine = slot.engineFor({ key: source.key, refusedOn });
      const drawing = engine.draw({
        owner: task.ownerId,
        model: source,
        adapters,
        request: { ...requestOf(task), ...pictureRequest(task, pictures, controls) },
        ...{ ...(upscaler && { upscaler: upscaler.source }), ...(safety && { safety }) },
        signal: AbortSignal.any([hold.signal, stored.failed]),
        onStarted: (started) => {
          scheduler = started.scheduler;
          served = { ...served, promptChunks: started.promptChunks };
          void this.recordStart(task, served, hold);
        },
        onProgress: this.progress.of(task, !stored.blocks),
        onPicture: (index, picture, upscaled, isFlagged = false) => {
          if (upscaled && upscaler) enlargedBy = upscaler.label;
          const parameters = parametersOf(task, index, { ...model, pictures, scheduler, upscaler: enlargedBy });
          stored.add({ index, picture, parameters, isFlagged });
        },
      });
      const endNote = this.pictures.noteDrawing(task.ownerId, engine.device);
      const { computeMs } = await drawing.finally(endNote).catch(async (error: Error) => {
        if (error instanceof TaskAbortedError) hold.usedSeconds = error.computeSeconds;
        throw await this.models.errorAfterRefusal(error, model, engine.device);
      });
      const computeSeconds = (hold.usedSeconds = computeMs / 1000);
      onDrawn();
      const drawn = await stored.all();
      crashPoint('after-file-write');
      if (!hold.signal.aborted) return { ...drawn, computeSeconds, upscaler: enlargedBy, served };
      throw new TaskAbortedError('The task was given up while its pictures were stored.');
    } catch (error) {
      await stored.all().catch(() => undefined);
      await this.discard(task);
      throw error instanceof TaskAbortedError && stored.failed.aborted ? stored.failed.reason : error;
    }
  }

  private sequenceOf(
    task: DrawingTask,
    { filter }: ResolvedModel,
    pictures: ReadPictures,
    { signal }: TaskHold,
  ): PictureSequence {
    const given = givenPictures(pictures);
    return new PictureSequence({
      // The operator's moderation holds for every key.
      blocks: filter === 'block' || (this.moderation.isOn && filter !== 'report'),
      flags: (picture) => this.moderation.flags(picture),
      save: ({ index, picture, parameters }, isFirst) =>
        this.pictures.save(task, { index, picture, parameters, given, isFirst }, signal),
    });
  }

  /**
   * After an error nobody knows whether the database has the pictures. So their files stay, and the sweeper removes
   * those that it lacks; their compute time is not charged a second time.
   * @throws TaskAbortedError if the task was given up meanwhile; StorageFullError
   */
  private async succeed(task: DrawingTask, drawn: Drawn, hold: TaskHold): Promise<void> {
    crashPoint('before-commit');
    hold.usedSeconds = 0;
    const settle = () => this.tasks.settle(task, { status: 'succeeded', ...drawn }).catch(ifStorageFull);
    const settled = await withRetries(settle, hold.signal);
    const { images, computeSeconds } = drawn;
    if (settled !== true) {
      hold.usedSeconds = computeSeconds;
      await this.discard(task);
      if (settled) throw settled;
      this.lost(hold);
    }
    crashPoint('after-commit');
    this.logger.log('succeeded', { taskId: task.id, attempt: task.attempt, images: images.length, computeSeconds });
  }

  /** The pictures do not wait for this, and do not need it: their settlement writes the same. */
  private async recordStart(task: DrawingTask, served: Served, hold: TaskHold): Promise<void> {
    try {
      if (!(await withRetries(() => this.tasks.recordServed(task, served)))) hold.lose();
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

const maskRequest = ({ data: values, ...size }: ReadMask['mask'], more: Pick<Mask, 'byAnyPixel'> = {}): Mask => ({
  ...size,
  values,
  ...more,
});

function pictureRequest(
  { inputs }: DrawingTask,
  { image, mask, around, control, references }: ReadPictures,
  controls: readonly ModelSource[] = [],
): Partial<DrawRequest> {
  return {
    ...(image && { image: image.image, strength: inputs!.strength! }),
    ...(mask && { mask: maskRequest(mask.mask) }),
    ...(around && { mask: maskRequest(around.mask, { byAnyPixel: true }) }),
    ...(references.length > 0 && { references: references.map((each) => each.image) }),
    ...(control.length > 0 && {
      control: control.map(({ image: map }, i) => {
        const { scale, start, end } = inputs!.control![i];
        return { controlNet: controls[i], image: map, scale, start, end };
      }),
    }),
  };
}
