import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  kindOf,
  loadAdapter,
  ranksOf,
  readAdapter,
  readModelFolder,
  schedulerNames,
  Pipeline,
  type TextToImageRequest,
  type Trajectory,
} from '@app/diffusion';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';

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

const mostAtOnce = 8;

type Name = 'shapes' | 'sd15' | 'sdxl';

/** A model, two LoRAs of it, and of those with random weights a textual inversion. @param root an empty folder */
async function place(name: Name, root: string): Promise<{ model: string; files: string[] }> {
  const at = (...names: string[]) => join(__dirname, ...names);
  const robot = ['diffusers', 'kohya'].map((form) => at('models/lora', `zwx-robot-${form}.safetensors`));
  if (name === 'shapes') return { model: at('../../models/shapes'), files: robot };
  const names = { sd15: ['lora-attention-peft', 'lora-linear-kohya'], sdxl: ['lora-peft', 'lora-kohya-ldm'] };
  await unpackFamily(name, root);
  const files = [...names[name], 'zig'].map((file) => join(root, 'adapters', `${file}.safetensors`));
  return { model: join(root, 'model'), files };
}

/** On the CPU a row of a call is the same to the last bit whatever stands beside it, so a picture is too. */
describe.each<Name>(['shapes', 'sd15', 'sdxl'])('Pictures that share steps, drawn by %s', (name) => {
  const root = mkdtempSync(join(tmpdir(), 'shared-steps-'));
  let pipeline: Pipeline;
  /** None, Fine-Tunes of different ranks, one of them at another scale, and one beside a word. */
  const uses: AdapterUse[][] = [[]];

  beforeAll(async () => {
    const { model, files } = await place(name, root);
    const { tensors } = await readModelFolder(model);
    const load = async (file: string) => loadAdapter(fitAdapter(await readAdapter(file), tensors));
    const [first, second, word] = await Promise.all(files.map(load));
    uses.push([{ adapter: first, scale: 1 }], [{ adapter: second, scale: 0.5 }], [{ adapter: first, scale: 0.25 }]);
    if (word)
      uses.push([
        { adapter: first, scale: 0.5 },
        { adapter: word, scale: 1, token: 'zig' },
      ]);
    pipeline = await Pipeline.load(model, cpu);
  });
  afterAll(async () => {
    await pipeline.release();
    rmSync(root, { recursive: true });
  });

  /**
   * One request for each scheduler and kind of guidance, no two with the same text, seed or number of steps. What
   * schedulers remember is the same for every model: the large one draws with every third.
   */
  function requests(): TextToImageRequest[] {
    const edge = Math.max(64, 4 * pipeline.facts.scaleFactor);
    const chosen = [undefined, ...schedulerNames].filter((_, i) => name !== 'shapes' || i % 3 === 0);
    return chosen.flatMap((scheduler, i) =>
      [1, 7.5].map((guidanceScale, guided) => ({
        prompt: `a zig picture ${i} ${guided}`,
        negativePrompt: guided ? `not ${i}` : null,
        width: edge,
        height: edge,
        numInferenceSteps: 4 + ((i + guided) % 5),
        guidanceScale,
        seeds: [10 * i + guided],
        adapters: uses[(2 * i + guided) % uses.length],
        ...(scheduler && { scheduler }),
      })),
    );
  }

  const prepared = async (request: TextToImageRequest): Promise<Trajectory> => (await pipeline.prepare(request))[0];

  async function alone(request: TextToImageRequest): Promise<Float32Array> {
    const trajectory = await prepared(request);
    while (!trajectory.done) await pipeline.step([trajectory]);
    return trajectory.latents;
  }

  /** Pictures of one rank share calls, and those without a Fine-Tune go with any of their size. */
  const mayJoin = (one: Trajectory, group: Trajectory): boolean =>
    kindOf(one) === kindOf(group) && ['', ranksOf(group.adapters)].includes(ranksOf(one.adapters));

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
      const leader = present[Math.floor(random() * present.length)];
      const together = present.filter((one) => mayJoin(one, leader));
      const chosen = together.filter(() => random() < 0.8);
      await pipeline.step(chosen.length > 0 ? chosen : together);
      drawn.push(...present.filter(({ done }) => done));
      present = present.filter(({ done }) => !done);
    }
    expect(drawn).toHaveLength(requests().length);
    for (const trajectory of drawn) expect(trajectory.latents).toStrictEqual(await alone(wanted.get(trajectory)!));
  });

  it('are drawn without a Fine-Tune as if there were none', async () => {
    const [request] = requests();
    const plain = { ...request, adapters: [] };
    const unused = uses[1].map((use) => ({ ...use, scale: 0 }));
    expect(await alone({ ...plain, adapters: unused })).toStrictEqual(await alone(plain));
    expect(await alone({ ...plain, adapters: uses[1] })).not.toStrictEqual(await alone(plain));
  });

  it('take one call of the U-Net for all of one size and prompt length, whatever their schedulers and steps', async () => {
    const trajectories = await Promise.all(
      requests()
        .slice(0, 6)
        .map((request) => prepared({ ...request, adapters: [] })),
    );
    await pipeline.step([trajectories[0]]);
    const { runs } = pipeline.spent.denoiser;
    await pipeline.step(trajectories);
    expect(pipeline.spent.denoiser.runs - runs).toBe(1);
  });

  it('are refused a step together if they differ in size, in the length of their prompts or in rank', async () => {
    const [request] = requests();
    const others = [
      { ...request, prompt: 'red '.repeat(100) },
      { ...request, width: 2 * request.width },
      // Both files of the large model have one rank.
      ...(name === 'shapes' ? [] : [{ ...request, adapters: uses[2] }]),
    ];
    const trajectory = await prepared({ ...request, adapters: uses[1] });
    for (const other of others)
      await expect(pipeline.step([trajectory, await prepared(other)])).rejects.toThrow(RangeError);
    expect(trajectory.stepIndex).toBe(0);
  });
});
