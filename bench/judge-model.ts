import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import type { Client, NewGeneration } from '../packages/client/src';
import { createClient } from '../packages/client/src';
import type { Verdict } from './judge/judge';
import { judge } from './judge/judge';
import { render } from './judge/render';
import type { Scene } from './judge/scenes';
import { randomFrom, sampleScene } from './judge/scenes';

const usage = `node scripts/judge-model.mjs [options]: draws random captions through a running service and counts the pictures that are right.

  --url <address>      of the service                        http://localhost:3000
  --key <token>        else the content of .darkroom/api-key
  --model <name>       as in GET /v1/models                  shapes
  --count <n>          captions                              200
  --seed <n>           of the captions and pictures          1
  --cfg, --steps, --scheduler   as in a request; else the service's defaults
  --keep <folder>      for the pictures that are wrong`;

const text = { type: 'string' } as const;
const { values: options } = parseArgs({
  options: {
    url: { ...text, default: 'http://localhost:3000' },
    model: { ...text, default: 'shapes' },
    count: { ...text, default: '200' },
    seed: { ...text, default: '1' },
    ...{ key: text, cfg: text, steps: text, scheduler: text, keep: text },
    help: { type: 'boolean', default: false },
  },
});

/** Number of concurrent pictures. */
const concurrency = 4;

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const key = options.key ?? readFileSync(join('.darkroom', 'api-key'), 'utf8').trim();
  const darkroom = createClient({ baseUrl: options.url, apiKey: key });
  const scenes = scenesOf(Number(options.seed), Number(options.count));
  const verdicts: Verdict[] = [];
  let next = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < scenes.length; index = next++) {
      verdicts[index] = await judgeOne(darkroom, scenes[index], Number(options.seed) * 1000 + index);
      process.stderr.write(`\r${++done} of ${scenes.length}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  process.stderr.write('\n');
  console.log(figuresOf(scenes, verdicts));
}

/** Random scenes, without those whose exact picture is ambiguous, such as gray on a gradient that ends in gray. */
function scenesOf(seed: number, count: number): Scene[] {
  const random = randomFrom(seed);
  const scenes: Scene[] = [];
  while (scenes.length < count) {
    const scene = sampleScene(random);
    if (judge(scene, render(scene)).problems.length === 0) scenes.push(scene);
  }
  return scenes;
}

async function judgeOne(darkroom: Client, scene: Scene, seed: number): Promise<Verdict> {
  const record = await darkroom.generate({
    prompt: scene.caption,
    aspect_ratio: scene.format,
    model: options.model,
    seed,
    ...(options.cfg && { cfg: Number(options.cfg) }),
    ...(options.steps && { steps: Number(options.steps) }),
    ...(options.scheduler && { scheduler: options.scheduler as NewGeneration['scheduler'] }),
  });
  const file = Buffer.from(await (await fetch(record.images[0])).arrayBuffer());
  const { data, info } = await sharp(file).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const verdict = judge(scene, { data, width: info.width, height: info.height });
  if (options.keep && verdict.problems.length > 0) {
    mkdirSync(options.keep, { recursive: true });
    writeFileSync(join(options.keep, `${seed} ${scene.caption}.png`), file);
  }
  return verdict;
}

function figuresOf(scenes: readonly Scene[], verdicts: readonly Verdict[]): object {
  const isRight = ({ problems }: Verdict) => problems.length === 0;
  const wrong: Record<string, number> = {};
  for (const { problems } of verdicts)
    for (const kind of new Set(problems.map((problem) => problem.split(':')[0]))) wrong[kind] = (wrong[kind] ?? 0) + 1;
  const rightOf = (mode: Scene['mode']) => {
    const those = verdicts.filter((_, index) => scenes[index].mode === mode);
    return `${those.filter(isRight).length} of ${those.length}`;
  };
  return {
    right: `${((100 * verdicts.filter(isRight).length) / verdicts.length).toFixed(1)} %`,
    meanOverlap: Number((verdicts.reduce((sum, { overlap }) => sum + overlap, 0) / verdicts.length).toFixed(3)),
    wrong,
    rightByMode: { one: rightOf('one'), two: rightOf('two'), many: rightOf('many') },
  };
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
