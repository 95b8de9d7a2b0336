import {
  type ControlNet,
  kindOf,
  ranksOf,
  type RgbImage,
  type TextToImageRequest,
  type Trajectory,
} from '@app/diffusion';
import type { CallTimes } from './call-times';
import type { DrawingProgress, DrawRequest, DrawTask } from './engine-protocol';
import { adapterBytes, bytesPerRow } from './memory';
import type { Loaded, LoadedModel } from './models';

/** Pictures that the service asks for, and how they are tried. It becomes a drawing when its texts are encoded. */
export interface Task extends DrawTask {
  /** Whether nothing may be drawn beside it: beside others it ran out of memory. */
  alone?: boolean;
}

/** A preview costs a pass over the latents, so a drawing has a few a second at most. */
const previewIntervalMs = 400;

/** One picture of a drawing. */
export interface Picture {
  index: number;
  trajectory: Trajectory;
  /** Rows in a call of the U-Net: two with guidance, else one. */
  rows: number;
  /** Once it is decoded. */
  image?: RgbImage;
  /** The pixels that are reported: as decoded, or enlarged. */
  finished?: RgbImage;
}

/** A task that has begun: its pictures on their way, and what it has had of the device. */
export class DrawingInProgress {
  readonly pictures: readonly Picture[];
  /** Equal for pictures that may share a call: of one model, one size and one length of text. */
  readonly callKey: string;
  /** The ranks of its adapters: all adapters of a call have the same. Empty without adapters, which goes with any. */
  readonly adapterRanks: string;
  /** Bytes that a row of its calls takes. */
  readonly rowBytes: number;
  /** Whether a call that it shared failed, so that its next one is its own. */
  isSuspect = false;
  /** Milliseconds of the device; of a call that it shared, its rows' part. */
  computeMs: number;
  /** Numbers of its first pictures that are reported, and were before it began anew. */
  private reported = 0;
  private readonly reportedBefore: number;
  private readonly begunAt: number;
  private previewedAt = performance.now();

  /**
   * @param trajectories as `pipeline.prepare` made them
   * @param previous the same drawing, if it is begun anew
   */
  constructor(
    readonly task: Task,
    readonly model: LoadedModel,
    trajectories: readonly Trajectory[],
    private readonly times: CallTimes,
    previous?: DrawingInProgress,
    /** The ControlNets that it follows. */
    readonly controls: readonly Loaded<ControlNet>[] = [],
  ) {
    const [first] = trajectories;
    this.pictures = trajectories.map((trajectory, index) => ({ index, trajectory, rows: trajectory.rows }));
    this.callKey = [model.key, kindOf(first), ...controls.map(({ key }) => key)].join(' ');
    this.adapterRanks = ranksOf(first.adapters);
    const { facts, provider } = model.pipeline;
    this.rowBytes = bytesPerRow(facts.widths, task.request, provider) + adapterBytes(first);
    this.computeMs = previous?.computeMs ?? 0;
    this.begunAt = performance.now() - this.computeMs;
    this.reportedBefore = Math.max(previous?.reportedBefore ?? 0, previous?.reported ?? 0);
  }

  get owner(): string {
    return this.task.owner;
  }

  get denoising(): Picture[] {
    return this.pictures.filter(({ trajectory }) => !trajectory.done);
  }

  /** A picture that is denoised and not decoded. */
  get toDecode(): Picture | undefined {
    return this.pictures.find(({ trajectory, image }) => trajectory.done && !image);
  }

  /** A picture that is decoded and not enlarged, if it is to be. */
  get toEnlarge(): Picture | undefined {
    return this.pictures.find(({ image, finished }) => image && !finished);
  }

  get isDone(): boolean {
    return this.reported === this.pictures.length;
  }

  /** Rows of the U-Net that it still needs over all its steps. */
  get rowsLeft(): number {
    return sum(this.pictures, ({ rows, trajectory }) => rows * trajectory.remainingSteps);
  }

  get rowsInAll(): number {
    return sum(this.pictures, ({ rows, trajectory }) => rows * trajectory.totalSteps);
  }

  /** Milliseconds of a row at present; 0 until that is measured. */
  get rowMs(): number {
    return this.times.rowMs(this.callKey);
  }

  /** Milliseconds of the device that it still needs, as far as they are known. */
  get msLeft(): number {
    const { callKey, times, task } = this;
    const decodeMs = times.of(`decoding ${callKey}`);
    const enlargeMs = task.upscaler ? times.of(task.upscaler.key) : 0;
    const afterMs = sum(this.pictures, ({ image, finished }) => (image ? 0 : decodeMs) + (finished ? 0 : enlargeMs));
    return this.rowsLeft * this.rowMs + afterMs;
  }

  /** Milliseconds for which it has waited for others since it began. */
  get waitedMs(): number {
    return performance.now() - this.begunAt - this.computeMs;
  }

  /** Steps done, averaged over its pictures. */
  get progress(): DrawingProgress {
    const step = Math.floor(sum(this.pictures, ({ trajectory }) => trajectory.stepIndex) / this.pictures.length);
    return { step, total: this.pictures[0].trajectory.totalSteps };
  }

  /** Since when it could have a preview, in milliseconds; undefined while it is too soon for one. */
  previewDueAt(now: number): number | undefined {
    const dueAt = this.previewedAt + previewIntervalMs;
    return dueAt <= now && this.denoising.length > 0 ? dueAt : undefined;
  }

  /** A preview of its first picture that is not done. @throws NotFiniteError */
  preview(now: number): RgbImage {
    this.previewedAt = now;
    return this.model.pipeline.preview(this.denoising[0].trajectory);
  }

  /** The pictures that are finished and not reported, in their order; from now on they count as reported. */
  takeFinished(): Picture[] {
    const first = Math.max(this.reported, this.reportedBefore);
    while (this.pictures[this.reported]?.finished) this.reported++;
    return this.pictures.slice(first, this.reported);
  }
}

/** Rows that pictures have in a call of the U-Net. */
export function rowsOf(pictures: readonly Pick<Picture, 'rows'>[]): number {
  return sum(pictures, ({ rows }) => rows);
}

/** Whether its caller no longer wants it. */
export function isCanceled({ cancel }: Pick<Task, 'cancel'>): boolean {
  return Atomics.load(new Int32Array(cancel), 0) !== 0;
}

/** The request as the pipeline takes it. */
export function pipelineRequest(
  { seed, numImages, scheduler, control = [], ...rest }: DrawRequest,
  controls: readonly Loaded<ControlNet>[] = [],
): TextToImageRequest {
  return {
    ...rest,
    seeds: Array.from({ length: numImages }, (_, i) => seedOf(seed, i)),
    ...(control.length > 0 && {
      control: control.map(({ model: _, ...use }, i) => ({ ...use, controlNet: controls[i].pipeline })),
    }),
    ...(scheduler && { scheduler: scheduler as TextToImageRequest['scheduler'] }),
  };
}

/**
 * Seed of the i-th picture, as `seedOf` of `@app/domain`, whose entities an engine's thread does not load; a test
 * compares the two.
 */
export function seedOf(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
