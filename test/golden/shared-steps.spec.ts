import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { schedulerNames, StableDiffusionPipeline, type TextToImageRequest, type Trajectory } from '@app/diffusion';
import { cpu } from '../support/cpu';
import { usingFirstTimestep } from '../support/onnx';

/** A generator of numbers below 1 that is the same in every run. Source: mulberry32 (Tommy Ettinger). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const folders = {
  shapes: '../../models/shapes',
  'sd15-diffusers': 'models/tiny/sd15-diffusers',
  'sd15-fp16': 'models/tiny/sd15-fp16',
  'sd21-optimum': 'models/tiny/sd21-optimum',
};
const withAll = 'sd15-diffusers';
const mostAtOnce = 8;

describe('a graph that gives every row the first timestep', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-timesteps-'));
    cpSync(join(__dirname, folders['sd15-diffusers']), folder, { recursive: true });
    const unet = join(folder, 'unet', 'model.onnx');
    writeFileSync(unet, usingFirstTimestep(readFileSync(unet)));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('moves only pictures of one timestep together, and draws the same', async () => {
    const request = { prompt: 'red', width: 64, height: 64, numInferenceSteps: 3, guidanceScale: 7.5, seeds: [1, 2] };
    const [pipeline, plain] = await Promise.all(
      [folder, join(__dirname, folders['sd15-diffusers'])].map((path) => StableDiffusionPipeline.load(path, cpu)),
    );
    const [first, second] = await pipeline.prepare(request);
    expect(pipeline.groupOf(first)).toBe(pipeline.groupOf(second));
    await pipeline.step([first]);
    expect(pipeline.groupOf(first)).not.toBe(pipeline.groupOf(second));
    await expect(pipeline.step([first, second])).rejects.toThrow(RangeError);
    expect((await pipeline.generate(request)).latents).toStrictEqual((await plain.generate(request)).latents);
    await Promise.all([pipeline.release(), plain.release()]);
  });
});

/** On the CPU a row of a call is the same to the last bit whatever stands beside it, so a picture is too. */
describe.each(Object.entries(folders))('pictures that share steps, drawn by %s', (name, folder) => {
  let pipeline: StableDiffusionPipeline;

  beforeAll(async () => {
    pipeline = await StableDiffusionPipeline.load(join(__dirname, folder), cpu);
  });
  afterAll(() => pipeline.release());

  /**
   * One request for each scheduler and kind of guidance, no two with the same text, seed or number of steps. What
   * schedulers remember is the same for every graph: one draws with all of them, the others with every third.
   */
  function requests(): TextToImageRequest[] {
    const edge = Math.max(64, 4 * pipeline.facts.vaeScaleFactor);
    const chosen = [undefined, ...schedulerNames].filter((_, i) => name === withAll || i % 3 === 0);
    return chosen.flatMap((scheduler, i) =>
      [1, 7.5].map((guidanceScale, guided) => ({
        prompt: `picture ${i} ${guided}`,
        negativePrompt: guided ? `not ${i}` : null,
        width: edge,
        height: edge,
        numInferenceSteps: 4 + ((i + guided) % 5),
        guidanceScale,
        seeds: [10 * i + guided],
        ...(scheduler && { scheduler }),
      })),
    );
  }

  async function prepared(request: TextToImageRequest): Promise<Trajectory> {
    const [trajectory] = await pipeline.prepare(request);
    return trajectory;
  }

  async function alone(request: TextToImageRequest): Promise<Float32Array> {
    const trajectory = await prepared(request);
    while (!trajectory.done) await pipeline.step([trajectory]);
    return trajectory.latents;
  }

  it('equal to the last bit those drawn alone, whoever joins and leaves beside them', async () => {
    const random = numbers(name.length);
    const waiting = requests();
    const wanted = new Map<Trajectory, TextToImageRequest>();
    const drawn: Trajectory[] = [];
    let present: Trajectory[] = [];
    while (waiting.length > 0 || present.length > 0) {
      while (waiting.length > 0 && present.length < 1 + Math.floor(random() * mostAtOnce)) {
        const request = waiting.splice(Math.floor(random() * waiting.length), 1)[0];
        const trajectory = await prepared(request);
        wanted.set(trajectory, request);
        present.splice(Math.floor(random() * (present.length + 1)), 0, trajectory);
      }
      // Some of those that may share a call stay behind now and then.
      const group = pipeline.groupOf(present[Math.floor(random() * present.length)]);
      const together = present.filter((one) => pipeline.groupOf(one) === group);
      const chosen = together.filter(() => random() < 0.8);
      await pipeline.step(chosen.length > 0 ? chosen : together);
      drawn.push(...present.filter(({ done }) => done));
      present = present.filter(({ done }) => !done);
    }
    expect(drawn).toHaveLength(requests().length);
    for (const trajectory of drawn) expect(trajectory.latents).toStrictEqual(await alone(wanted.get(trajectory)!));
  });

  it('take one call of the U-Net for all of one size and prompt length, whatever their schedulers and steps', async () => {
    const trajectories = await Promise.all(requests().slice(0, 6).map(prepared));
    await pipeline.step([trajectories[0]]);
    const { runs } = pipeline.spent.unet;
    await pipeline.step(trajectories);
    expect(pipeline.spent.unet.runs - runs).toBe(1);
  });

  it('are refused a step together if they differ in size or in the length of their prompts', async () => {
    const [request] = requests();
    const long = { ...request, prompt: 'red '.repeat(100) };
    const wide = { ...request, width: 2 * request.width };
    const trajectory = await prepared(request);
    for (const other of [long, wide])
      await expect(pipeline.step([trajectory, await prepared(other)])).rejects.toThrow(RangeError);
    expect(trajectory.stepIndex).toBe(0);
  });
});
