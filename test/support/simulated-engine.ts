import { setImmediate } from 'node:timers/promises';
import { join } from 'node:path';
import { type RgbImage, Pipeline, type TextToImageRequest, type Trajectory } from '@app/diffusion';
import { EngineLoop } from '../../apps/inference/src/engine/engine-loop';
import type { EngineTask } from '../../apps/inference/src/engine/running-task';

/** A request at a time. */
export interface Arrival {
  atMs: number;
  owner: string;
  steps: number;
  pictures?: number;
  /** By default true: a picture has two rows. */
  isGuided?: boolean;
  /** Pixels; by default 256. */
  edge?: number;
}

/** In milliseconds. */
export interface SimulatedDevice {
  callMs: (rows: number) => number;
  decodeMs: number;
}

const folder = join('test', 'golden', 'models', 'tiny', 'sd15-diffusers');
/** From these the loop learns how long calls take. */
const warmUp = Array.from({ length: 8 }, (_, i): Arrival => ({ atMs: 0, owner: `before ${i}`, steps: 15 }));

/**
 * Draws requests by the engine's own loop on a device that only lets time pass: hours take seconds. The clock is the
 * process's, so one simulation runs at a time.
 * @param isOneAtATime whether each begins when the one before it is done, as in a plain queue
 * @returns for each arrival the milliseconds until it was done
 */
export async function simulate(
  arrivals: readonly Arrival[],
  device: SimulatedDevice,
  isOneAtATime = false,
): Promise<number[]> {
  const now = Object.getOwnPropertyDescriptor(performance, 'now');
  const load = Object.getOwnPropertyDescriptor(Pipeline, 'loadWithoutTexts')!;
  const latencies: number[] = [];
  let [clock, startedAt, next, running] = [0, Infinity, 0, 0];
  const comeUntilNow = (): void => {
    while (!isOneAtATime && startedAt + arrivals[next]?.atMs <= clock) draw(next, arrivals[next++]);
  };
  const pipeline = pipelineOf(device, (ms) => {
    clock += Math.round(ms);
    comeUntilNow();
  });
  performance.now = () => clock;
  Pipeline.loadWithoutTexts = async () => pipeline;
  const loop = new EngineLoop({ device: 'cpu', intraOpNumThreads: 1, cacheDir: '/nowhere' }, 2 ** 36, (message) => {
    if (message.type === 'failed') throw new Error(message.message);
    if (message.type !== 'done') return;
    running--;
    if (message.id >= 0) latencies[message.id] = clock - startedAt - arrivals[message.id].atMs;
  });
  const draw = (id: number, arrival: Arrival): void => {
    running++;
    loop.add(taskOf(id, arrival));
  };
  const idle = async (): Promise<void> => {
    while (running > 0) await setImmediate();
  };
  for (const [i, arrival] of warmUp.entries()) draw(-1 - i, arrival);
  await idle();
  startedAt = clock;
  while (next < arrivals.length) {
    clock = Math.max(clock, startedAt + arrivals[next].atMs);
    if (isOneAtATime) draw(next, arrivals[next++]);
    else comeUntilNow();
    await idle();
  }
  await loop.close();
  if (now) Object.defineProperty(performance, 'now', now);
  else Reflect.deleteProperty(performance, 'now');
  Object.defineProperty(Pipeline, 'loadWithoutTexts', load);
  return latencies;
}

/** What the loop uses of a model. */
function pipelineOf({ callMs, decodeMs }: SimulatedDevice, pass: (ms: number) => void): Pipeline {
  const image: RgbImage = { width: 1, height: 1, data: new Uint8Array(3) };
  const pipeline = {
    facts: { scheduler: 'euler' },
    bytesOf: () => ({ row: 2 ** 20, decoding: 2 ** 20 }),
    rowsOfCall: (rows: number) => rows,
    prepare: async (request: TextToImageRequest) => request.seeds.map(() => trajectoryOf(request)),
    step: async (trajectories: Trajectory[]) => {
      pass(callMs(trajectories.reduce((rows, trajectory) => rows + trajectory.rows, 0)));
      for (const trajectory of trajectories) trajectory.stepIndex++;
    },
    decode: async () => (pass(decodeMs), image),
    preview: () => image,
    release: async () => undefined,
  };
  return pipeline as unknown as Pipeline;
}

function taskOf(id: number, { owner, steps, pictures = 1, isGuided = true, edge = 256 }: Arrival): EngineTask {
  return {
    ...{ id, owner, adapters: [], cancel: new SharedArrayBuffer(4) },
    model: { key: 'simulated', name: 'simulated', folder, hash: '' },
    request: {
      ...{ prompt: '', negativePrompt: null, guidanceScale: isGuided ? 7 : 1, promptWeighting: false, scheduler: null },
      ...{ width: edge, height: edge, seed: 1, numImages: pictures, numInferenceSteps: steps },
    },
  };
}

function trajectoryOf({ numInferenceSteps: totalSteps, guidanceScale, width, height }: TextToImageRequest): Trajectory {
  const [rows, shape] = [guidanceScale > 1 ? 2 : 1, [4, height / 8, width / 8]];
  const trajectory = {
    ...{ rows, shape, prompt: { chunks: 1, lengths: [77] }, references: [], adapters: new Map(), isSpoilt: false },
    ...{ totalSteps, stepIndex: 0 },
    get remainingSteps(): number {
      return this.totalSteps - this.stepIndex;
    },
    get done(): boolean {
      return this.stepIndex === this.totalSteps;
    },
  };
  return trajectory as unknown as Trajectory;
}
