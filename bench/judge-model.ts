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
  --keep <folder>      for the pictures that are wrong
  --json <file>        for the figures`;

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://localhost:3000' },
    key: { type: 'string' },
    model: { type: 'string', default: 'shapes' },
    count: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    cfg: { type: 'string' },
    steps: { type: 'string' },
    scheduler: { type: 'string' },
    keep: { type: 'string' },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

/** Number of concurrent pictures. */
const concurrency = 4;

/** The result of one caption. */
interface Result extends Verdict {
  caption: string;
  seed: number;
  servedBy: string | null;
}

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const key = options.key ?? readFileSync(join('.darkroom', 'api-key'), 'utf8').trim();
  const darkroom = createClient({ baseUrl: options.url, apiKey: key });
  const scenes = scenesOf(Number(options.seed), Number(options.count));
  const results: Result[] = [];
  let next = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < scenes.length; index = next++) {
      results[index] = await judgeOne(darkroom, scenes[index], Number(options.seed) * 1000 + index);
      process.stderr.write(`\r${++done} of ${scenes.length}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  process.stderr.write('\n');
  report(scenes, results);
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

async function judgeOne(darkroom: Client, scene: Scene, seed: number): Promise<Result> {
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
  return { ...verdict, caption: scene.caption, seed, servedBy: record.served_by };
}

function report(scenes: readonly Scene[], results: readonly Result[]): void {
  const rightOf = (those: readonly Result[]) => those.filter(({ problems }) => problems.length === 0).length;
  const wrong: Record<string, number> = {};
  for (const { problems } of results)
    for (const kind of new Set(problems.map((problem) => problem.split(':')[0]))) wrong[kind] = (wrong[kind] ?? 0) + 1;
  const rightByMode = Object.fromEntries(
    ['one', 'two', 'many'].map((mode) => {
      const those = results.filter((_, index) => scenes[index].mode === mode);
      return [mode, `${rightOf(those)} of ${those.length}`];
    }),
  );
  const figures = {
    servedBy: results[0]?.servedBy,
    right: `${((100 * rightOf(results)) / results.length).toFixed(1)} %`,
    meanOverlap: Number((results.reduce((sum, { overlap }) => sum + overlap, 0) / results.length).toFixed(3)),
    wrong,
    rightByMode,
  };
  console.log(figures);
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ options, figures, results }, null, 2)}\n`);
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
