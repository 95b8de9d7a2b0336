import type { RgbImage, StableDiffusionPipeline, TextToImageRequest, Trajectory } from '@app/diffusion';
import type { DrawingProgress, DrawRequest, EngineCommand } from './engine-protocol';
import { seedOf } from './seed';
import type { Candidate } from './turn';

export type DrawCommand = Extract<EngineCommand, { type: 'draw' }>;

/** A preview costs a pass over the latents, so there are a few a second at most. */
const previewIntervalMs = 400;

/** A request that the engine draws: its pictures on their way, and what it has had of the engine's time. */
export class DrawingInProgress implements Candidate {
  passedOver = 0;
  isSuspect = false;
  /** Time of the engine that it took; of a call that it shared, its rows' part. */
  computeMs: number;
  /** How many of its first pictures were handed on when it was drawn before. */
  readonly handedOn: number;
  /** Decoded, in order. Those that are handed on are gone. */
  readonly decoded: RgbImage[] = [];
  private previewedAt = performance.now();

  /**
   * @param trajectories as `pipeline.prepare` made them of the command's request
   * @param previous the same drawing, if it is begun anew
   */
  constructor(
    readonly command: DrawCommand,
    readonly pipeline: StableDiffusionPipeline,
    readonly trajectories: readonly Trajectory[],
    previous?: DrawingInProgress,
  ) {
    this.computeMs = previous?.computeMs ?? 0;
    this.handedOn = Math.max(previous?.handedOn ?? 0, previous?.decoded.length ?? 0);
  }

  get owner(): string {
    return this.command.owner;
  }

  get isAborted(): boolean {
    return isAborted(this.command);
  }

  /** Whether every picture has all its steps behind it. */
  get isDenoised(): boolean {
    return this.trajectories.every(({ done }) => done);
  }

  get remainingWork(): number {
    return sum(this.trajectories, ({ rows, remainingSteps }) => rows * remainingSteps);
  }

  get totalWork(): number {
    return sum(this.trajectories, ({ rows, totalSteps }) => rows * totalSteps);
  }

  get pictures(): { group: string; rows: number; trajectory: Trajectory }[] {
    return this.trajectories
      .filter(({ done }) => !done)
      .sort((a, b) => a.remainingSteps - b.remainingSteps)
      .map((trajectory) => ({
        // Equal sizes of two models share nothing.
        group: `${this.command.model.key} ${this.pipeline.groupOf(trajectory)}`,
        rows: trajectory.rows,
        trajectory,
      }));
  }

  /** Steps that its pictures have behind them, in the mean. */
  get progress(): DrawingProgress {
    const { length } = this.trajectories;
    return {
      step: Math.floor(sum(this.trajectories, ({ stepIndex }) => stepIndex) / length),
      total: this.trajectories[0].totalSteps,
    };
  }

  /** Adds the time of this work to what the drawing took. */
  async timed<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.computeMs += performance.now() - startedAt;
    }
  }

  /** How long its preview has been due; below 0 where it is not. */
  previewDueMs(now: number): number {
    return this.isDenoised ? -1 : now - this.previewedAt - previewIntervalMs;
  }

  /** What its first picture that is not done will look like. @throws NotFiniteError */
  preview(now: number): RgbImage {
    this.previewedAt = now;
    return this.pipeline.preview(this.pictures[0].trajectory);
  }
}

/** Whether its caller no longer wants it. */
export function isAborted({ cancel }: DrawCommand): boolean {
  return Atomics.load(new Int32Array(cancel), 0) !== 0;
}

/** What the pipeline is asked for. */
export function pipelineRequest({ seed, numImages, scheduler, ...rest }: DrawRequest): TextToImageRequest {
  return {
    ...rest,
    seeds: Array.from({ length: numImages }, (_, i) => seedOf(seed, i)),
    ...(scheduler && { scheduler: scheduler as TextToImageRequest['scheduler'] }),
  };
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
