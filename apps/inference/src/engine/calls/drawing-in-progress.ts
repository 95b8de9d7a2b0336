import {
  kindOf,
  type RgbImage,
  type StableDiffusionPipeline,
  type TextToImageRequest,
  type Trajectory,
} from '@app/diffusion';
import { isCanceled } from '../threads/cancel';
import type { DrawingProgress, DrawRequest, EngineCommand } from '../engine-protocol';
import type { LoadedModel } from '../models/loaded-model';
import { seedOf } from './seed';
import type { Candidate, Suspicion } from './next-call';

export type DrawCommand = Extract<EngineCommand, { type: 'draw' }> & {
  /** Whether no other may be drawn beside it: beside others it ran out of memory. */
  alone?: boolean;
};

/** A preview costs a pass over the latents, so there are a few a second at most. */
const previewIntervalMs = 400;

/** A request that the engine draws: its pictures on their way, and what it has had of the engine's time. */
export class DrawingInProgress implements Candidate {
  passedOver = 0;
  suspicion?: Suspicion;
  /** Time of the engine that it took; of a call that it shared, its rows' part. */
  computeMs: number;
  /** How many of its first pictures were handed on when it was drawn before. */
  readonly handedOn: number;
  /** Pictures that a call or the decoder is at. */
  readonly underWay = new Set<Trajectory>();
  /** Its pictures in the order of the request; undefined for each that is not decoded yet. */
  private readonly images: (RgbImage | undefined)[];
  /** How many of its first pictures are decoded. */
  private firstDecoded = 0;
  private previewedAt = performance.now();

  /**
   * @param trajectories as `pipeline.prepare` made them of the command's request
   * @param previous the same drawing, if it is begun anew
   */
  constructor(
    readonly command: DrawCommand,
    readonly model: LoadedModel,
    readonly trajectories: readonly Trajectory[],
    previous?: DrawingInProgress,
  ) {
    this.computeMs = previous?.computeMs ?? 0;
    this.handedOn = Math.max(previous?.handedOn ?? 0, previous?.firstDecoded ?? 0);
    this.images = trajectories.map(() => undefined);
  }

  get owner(): string {
    return this.command.owner;
  }

  get pipeline(): StableDiffusionPipeline {
    return this.model.pipeline;
  }

  get isAborted(): boolean {
    return isAborted(this.command);
  }

  get remainingWork(): number {
    return sum(this.trajectories, ({ rows, remainingSteps }) => rows * remainingSteps);
  }

  get totalWork(): number {
    return sum(this.trajectories, ({ rows, totalSteps }) => rows * totalSteps);
  }

  /** Its pictures that are not decoded. */
  get undecoded(): Trajectory[] {
    return this.trajectories.filter((_, index) => !this.images[index]);
  }

  /** A picture that only has to be decoded, and nobody is at it. */
  get toDecode(): Trajectory | undefined {
    return this.undecoded.find((trajectory) => trajectory.done && !this.underWay.has(trajectory));
  }

  /** All its pictures, in order, once each is decoded. */
  get decoded(): RgbImage[] {
    return this.images.filter((image) => image !== undefined);
  }

  get pictures(): { group: string; rows: number; trajectory: Trajectory }[] {
    return this.trajectories
      .filter((trajectory) => !trajectory.done && !this.underWay.has(trajectory))
      .sort((a, b) => a.remainingSteps - b.remainingSteps)
      .map((trajectory) => ({
        group: this.groupOf(trajectory),
        rows: trajectory.rows,
        trajectory,
      }));
  }

  /** Pictures of one group may share a call. Those of two models never do, so the model is part of its name. */
  groupOf(trajectory: Trajectory): string {
    return `${this.command.model.key} ${this.pipeline.groupOf(trajectory)}`;
  }

  /**
   * Of all its pictures, which have one size and prompt. Calls of pictures of one kind take equally long, and equal
   * memory: what is learnt of one holds for all.
   */
  get kind(): string {
    return `${this.command.model.key} ${kindOf(this.trajectories[0])}`;
  }

  /** Steps that its pictures have behind them, in the mean. */
  get progress(): DrawingProgress {
    const { length } = this.trajectories;
    return {
      step: Math.floor(sum(this.trajectories, ({ stepIndex }) => stepIndex) / length),
      total: this.trajectories[0].totalSteps,
    };
  }

  /** A call of the U-Net with pictures of it went well; its part of that took so long. */
  stepped(ms: number): void {
    this.computeMs += ms;
    this.model.noteDrawn(ms);
  }

  /** A call of it failed: its next one is its own, and shows whether it is at fault. */
  suspect(mostRows = Infinity): void {
    this.suspicion = { mostRows: Math.min(this.suspicion?.mostRows ?? Infinity, mostRows) };
  }

  /** Takes a decoded picture. @returns those that are to be handed on now, because all before them are */
  took(trajectory: Trajectory, image: RgbImage): { index: number; image: RgbImage }[] {
    this.images[this.trajectories.indexOf(trajectory)] = image;
    const from = this.firstDecoded;
    while (this.images[this.firstDecoded]) this.firstDecoded++;
    const next = this.images.slice(from, this.firstDecoded).map((each, i) => ({ index: from + i, image: each! }));
    return next.filter(({ index }) => index >= this.handedOn);
  }

  /** How long its preview has been due; below 0 where it is not. */
  previewDueMs(now: number): number {
    return this.pictures.length === 0 ? -1 : now - this.previewedAt - previewIntervalMs;
  }

  /** What its first picture that is not done, nor under way, will look like. @throws NotFiniteError */
  preview(now: number): RgbImage {
    this.previewedAt = now;
    return this.pipeline.preview(this.pictures[0].trajectory);
  }
}

/** Whether its caller no longer wants it. */
export function isAborted({ cancel }: DrawCommand): boolean {
  return isCanceled(cancel);
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
