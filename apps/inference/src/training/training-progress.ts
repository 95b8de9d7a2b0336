import type { TrainingTask } from '@app/domain';
import type { JsonLogger } from '@app/observability';
import type { TaskHold, Trainings } from '@app/tasks';
import type { ProgressPublisher } from '../drawing/progress-publisher';
import type { RgbImage } from '../engine/engine-protocol';
import type { TrainingAdvance, TrainingMessage, TrainingState } from './training-protocol';
import type { TrainingStore } from './training-store';

/** Time between two steps that are written to the record. */
const writtenEveryMs = 2_000;

/** Passes on the messages of a training's process: to its event streams and record, and its states to the storage. */
export class TrainingProgress {
  private readonly publish: (step: TrainingAdvance & { preview?: RgbImage }) => void;
  private writtenAt = -Infinity;
  private last?: TrainingAdvance;
  /** Compute seconds of all attempts, as the record has them. */
  private written: number;
  private sample?: RgbImage;
  /** Waits to be stored. A newer one replaces it: each has tens of megabytes, and the storage may be slow. */
  private state?: TrainingState | undefined;
  /** One write after the other. */
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly task: TrainingTask,
    /** Content hash of the model. */
    private readonly hash: string,
    private readonly hold: TaskHold,
    private readonly trainings: Trainings,
    private readonly store: TrainingStore,
    /** Where steps are shown, and whether samples are, as it is now. */
    private readonly shown: { publisher: ProgressPublisher; showsSamples: () => Promise<boolean> },
    private readonly logger: JsonLogger,
  ) {
    this.publish = shown.publisher.ofTraining(task);
    this.written = task.trainedSeconds;
  }

  handle(message: TrainingMessage): void {
    if (message.type === 'stepped') this.stepped(message);
    else if (message.type === 'kept') this.kept(message);
    else if (message.type === 'sampled') void this.sampled(message.image);
  }

  /** Compute seconds of all attempts, when this one has taken so many milliseconds. */
  secondsAt(computeMs: number): number {
    return this.task.trainedSeconds + computeMs / 1000;
  }

  /** Compute seconds that the record lacks. */
  get unwritten(): number {
    return this.secondsAt(this.last?.computeMs ?? 0) - this.written;
  }

  /** Counts time before the first step, for good. Several readers of pictures spend it; the last write has it all. */
  spend(seconds: number): void {
    this.task.trainedSeconds += seconds;
    this.then(() => this.record(this.task.step, this.task.trainedSeconds, false));
  }

  /** Resolves when everything is written, the last step too. */
  async finish(): Promise<void> {
    if (this.last) this.then(() => this.write(this.last!, false));
    await this.writing;
  }

  private stepped(advance: TrainingAdvance): void {
    this.last = advance;
    this.publish({ ...advance, ...(this.sample && { preview: this.sample }) });
    this.sample = undefined;
    const now = performance.now();
    if (now - this.writtenAt < writtenEveryMs) return;
    this.writtenAt = now;
    this.then(() => this.write(this.last!, false));
  }

  private async sampled(image: RgbImage): Promise<void> {
    if (await this.shown.showsSamples().catch(() => false)) this.sample = image;
  }

  private kept(state: TrainingState): void {
    const isWaiting = this.state !== undefined;
    this.state = state;
    if (!isWaiting) this.then(() => this.keep());
  }

  private async keep(): Promise<void> {
    const state = this.state!;
    this.state = undefined;
    await this.store.keep(this.task, state, this.hash);
    await this.write(this.last ?? state, state.step > 0);
  }

  private async write({ step, computeMs }: TrainingAdvance, isKept: boolean): Promise<void> {
    await this.record(step, this.secondsAt(computeMs), isKept);
  }

  private async record(step: number, computeSeconds: number, isKept: boolean): Promise<void> {
    if (await this.trainings.recordProgress(this.task, { step, computeSeconds }, isKept)) this.written = computeSeconds;
    else this.hold.lose();
  }

  /**
   * A state or a step that cannot be written fails nothing: it costs no more than a death before the next one would.
   */
  private then(work: () => Promise<void>): void {
    this.writing = this.writing
      .then(() => (this.hold.lost ? undefined : work()))
      .catch(({ message }: Error) =>
        this.logger.warnSparingly('the progress of a training was not written', {
          taskId: this.task.id,
          reason: message,
        }),
      );
  }
}
