import { kindOf, ranksOf, type TextToImageRequest, type Trajectory } from '@app/diffusion';
import type { CallTimes } from './call-times';
import { type DrawingProgress, type DrawRequest, type DrawTask, type RgbImage, seedOf } from './engine-protocol';
import { adapterBytesPerRow } from './memory';
import type { LoadedControlNet, LoadedModel } from './models';

/** Pictures that the service asks for. The task runs once its model is loaded and its texts are encoded. */
export interface EngineTask extends DrawTask {
  /** Whether it has to be the only one that runs, without idle models beside it: it has failed before. */
  alone?: boolean;
}

/** Milliseconds between two previews of a task. Each preview is a pass over the latents. */
const previewIntervalMs = 400;

/** One picture of a task. */
export interface Picture {
  index: number;
  trajectory: Trajectory;
  /** Rows in a call of the denoiser: one, two with guidance, three for instruct-pix2pix. */
  rows: number;
  decoded?: RgbImage;
  /** Whether the safety checker has flagged it. */
  flagged?: boolean;
  /** The pixels that are reported: decoded, or upscaled if that is asked for. */
  finished?: RgbImage;
}

/** State of a task that is kept when it is restarted. */
export interface RestartState {
  computeMs: number;
  reported: number;
}

/** What a task begins with. */
interface TaskStart extends Pick<RunningTask, 'task' | 'model' | 'controls'> {
  /** Of its pictures, from `pipeline.prepare`. */
  trajectories: readonly Trajectory[];
  times: CallTimes;
  /** Time before that call, in milliseconds of `performance.now`. */
  startedAt: number;
  restartState?: RestartState | undefined;
}

/** A task that has begun: its pictures, and the device time that it has used and still needs. */
export class RunningTask {
  readonly task: EngineTask;
  readonly model: LoadedModel;
  /** ControlNets that it follows. */
  readonly controls: readonly LoadedControlNet[];
  readonly pictures: readonly Picture[];
  /** Key of its calls: model, size, length of text and ControlNets. Only tasks with the same key share a call. */
  readonly callKey: string;
  /** Ranks of its adapters; empty without any. Tasks share a call if their ranks are equal or one's are empty. */
  readonly adapterRanks: string;
  /** Bytes of a row in a call of the denoiser, adapters included. */
  readonly rowBytes: number;
  readonly decodeBytes: number;
  /** Whether a shared call failed, after which its next call is its own. */
  isSuspect = false;
  /** Device time of its successful work, in milliseconds: of shared calls, the part of its rows. */
  computeMs: number;
  /** Milliseconds of all work in which it had a part: shared calls count as a whole. */
  workedMs = 0;
  timesOutOfMemory = 0;
  /** Number of pictures before the first that is not finished. */
  private finishedCount = 0;
  private readonly times: CallTimes;
  private readonly reportedBefore: number;
  private readonly begunAt = performance.now();
  private previewedAt = this.begunAt;

  constructor({ task, model, controls, trajectories, times, startedAt, restartState }: TaskStart) {
    this.task = task;
    this.model = model;
    this.controls = controls;
    this.times = times;
    const [first] = trajectories;
    this.pictures = trajectories.map((trajectory, index) => ({ index, trajectory, rows: trajectory.rows }));
    this.callKey = [model.key, kindOf(first), ...controls.map(({ key }) => key)].join(' ');
    this.adapterRanks = ranksOf(first.adapters);
    const { row, decoding } = model.instance.bytesOf(first);
    this.rowBytes = row + adapterBytesPerRow(first);
    this.decodeBytes = decoding;
    this.computeMs = this.begunAt - startedAt + (restartState?.computeMs ?? 0);
    this.reportedBefore = restartState?.reported ?? 0;
  }

  /** Of all that it needs; of nothing once its pictures are decoded. */
  get modelKeys(): string[] {
    const { safety } = this.task;
    if (this.pictures.every(({ decoded }) => decoded)) return [];
    return [this.model, ...this.controls, ...(safety ? [safety] : [])].map(({ key }) => key);
  }

  get owner(): string {
    return this.task.owner;
  }

  get restartState(): RestartState {
    return { computeMs: this.computeMs, reported: Math.max(this.finishedCount, this.reportedBefore) };
  }

  get denoising(): Picture[] {
    return this.pictures.filter(({ trajectory }) => !trajectory.done);
  }

  get toDecode(): Picture | undefined {
    return this.pictures.find(({ trajectory, decoded }) => trajectory.done && !decoded);
  }

  /** The first picture that is decoded and not finished: it has to be upscaled. */
  get toUpscale(): Picture | undefined {
    return this.pictures.find(({ decoded, finished }) => decoded && !finished);
  }

  get isDone(): boolean {
    return this.finishedCount === this.pictures.length;
  }

  /** Rows of the denoiser that it still needs, all steps together. */
  get rowsLeft(): number {
    return sum(this.pictures, ({ rows, trajectory }) => rows * trajectory.remainingSteps);
  }

  get rowsInAll(): number {
    return sum(this.pictures, ({ rows, trajectory }) => rows * trajectory.totalSteps);
  }

  /** Device time that it still needs, in milliseconds, as far as times are known. */
  get msLeft(): number {
    const { callKey, times, task, pictures } = this;
    const decodeMs = times.meanMs(decodingOf(callKey));
    const upscaleMs = task.upscaler ? times.meanMs(task.upscaler.key) : 0;
    const lookMs = task.safety ? times.meanMs(task.safety.key) : 0;
    const afterMs = sum(
      pictures,
      ({ decoded, finished }) => (decoded ? 0 : decodeMs + lookMs) + (finished ? 0 : upscaleMs),
    );
    return this.rowsLeft * times.rowMs(callKey) + afterMs;
  }

  /** Milliseconds since it began in which only other tasks were worked on. */
  get waitedMs(): number {
    return performance.now() - this.begunAt - this.workedMs;
  }

  /** Steps done: the mean of its pictures. */
  get progress(): DrawingProgress {
    const step = Math.floor(sum(this.pictures, ({ trajectory }) => trajectory.stepIndex) / this.pictures.length);
    return { step, total: this.pictures[0].trajectory.totalSteps };
  }

  /** A preview of its first picture that has steps left, if one is due. @throws NotFiniteError */
  preview(now: number): RgbImage | undefined {
    if (now < this.previewedAt + previewIntervalMs || this.denoising.length === 0) return undefined;
    this.previewedAt = now;
    return this.model.instance.preview(this.denoising[0].trajectory);
  }

  /** The pictures that are finished and not reported yet, in their order. They count as reported from now on. */
  takeFinished(): Picture[] {
    const first = Math.max(this.finishedCount, this.reportedBefore);
    while (this.pictures[this.finishedCount]?.finished) this.finishedCount++;
    return this.pictures.slice(first, this.finishedCount);
  }
}

/** Name under which the time of decoding a picture is noted. */
export const decodingOf = (callKey: string): string => `decoding ${callKey}`;

/** Rows that pictures have in a call of the denoiser. */
export const rowsTogether = (pictures: readonly Pick<Picture, 'rows'>[]): number => sum(pictures, ({ rows }) => rows);

/** Whether the service has canceled it. */
export function isCanceled({ cancel }: Pick<EngineTask, 'cancel'>): boolean {
  return Atomics.load(new Int32Array(cancel), 0) !== 0;
}

/** The request in the form that the pipeline takes. */
export function pipelineRequest(
  { seed, numImages, scheduler, control = [], ...rest }: DrawRequest,
  controls: readonly LoadedControlNet[],
): TextToImageRequest {
  const guides = control.map((use, i) => ({ ...use, controlNet: controls[i].instance }));
  return {
    ...rest,
    seeds: Array.from({ length: numImages }, (_, index) => seedOf(seed, index)),
    ...(guides.length > 0 && { control: guides }),
    ...(scheduler && { scheduler: scheduler as TextToImageRequest['scheduler'] }),
  };
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
