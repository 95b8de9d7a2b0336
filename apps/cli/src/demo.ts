import 'reflect-metadata';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, parse, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { isAspectRatio, schedulerNames } from '@app/domain';
import { makeFolder } from '@app/process';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { NewGeneration } from '../../../packages/client/src';
import { draw, type Drawn } from './draw';
import { formatOf, pictureFile, unusedFile } from './picture-file';
import { CliError, runProgram } from './run-program';
import { serviceHelp, serviceOption, useService } from './running-service';
import { examples, writeSheet } from './sheet';
import { train, trainedPrompt, type Trained } from './train';

interface DemoOptions {
  negative?: string;
  seed?: number;
  steps?: number;
  cfg?: number;
  model?: string;
  scheduler?: NewGeneration['scheduler'];
  aspectRatio?: NewGeneration['aspect_ratio'];
  out?: string;
  json?: true;
  train?: true;
  url?: string;
}

/** Folder of pictures without a name, in the one from which the command was called. */
const picturesFolder = 'pictures';
const sheetFile = 'what-it-draws.png';
const trainedFile = 'robot.png';

/**
 * Draws one picture, or without a prompt a sheet of examples, and saves it; or has an object trained, and saves a
 * picture before and one after. When interrupted, it cancels the drawing or the training and stops what it started.
 */
async function demo(prompt: string | undefined, options: DemoOptions): Promise<void> {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort());
  const service = await useService(options.url, (line) => void process.stderr.write(`${line}\n`));
  try {
    interruption.signal.throwIfAborted();
    const startedAt = performance.now();
    const secondsSince = (): number => (performance.now() - startedAt) / 1000;
    if (options.train) {
      const body = bodyOf(prompt ?? trainedPrompt, { model: 'shapes', ...options });
      saveTrained(await train(service, body, interruption.signal), secondsSince(), options);
    } else if (prompt !== undefined) {
      const [drawn] = await draw(service, [bodyOf(prompt, options)], interruption.signal);
      savePicture(prompt, drawn, secondsSince(), options);
    } else {
      const drawn = await draw(service, examplesOf(options), interruption.signal);
      await saveSheet(drawn, secondsSince(), options);
    }
  } catch (error) {
    throw interruption.signal.aborted ? new CliError('Interrupted.') : error;
  } finally {
    await service.release();
  }
}

function savePicture(prompt: string, { record, data }: Drawn, seconds: number, options: DemoOptions): void {
  const extension = extname(new URL(record.images[0]).pathname).slice(1) || 'png';
  const file = resolve(options.out ?? unusedName((isTaken) => pictureFile(prompt, record.seed, extension, isTaken)));
  makeFolder(dirname(file));
  writeFileSync(file, data);
  process.stdout.write(
    options.json
      ? toJson({ file, seconds, generation: record })
      : `${file}\nDrawn in ${seconds.toFixed(1)} s by ${record.served_by} with seed ${record.seed}.\n`,
  );
}

function saveTrained({ finetune, before, after }: Trained, seconds: number, options: DemoOptions): void {
  const last = resolve(options.out ?? unusedName((isTaken) => unusedFile(trainedFile, isTaken)));
  const { dir, name, ext } = parse(last);
  const first = join(dir, `${name}-before${ext}`);
  makeFolder(dir);
  writeFileSync(first, before.data);
  writeFileSync(last, after.data);
  const { steps } = finetune.training!;
  process.stdout.write(
    options.json
      ? toJson({ files: [first, last], seconds, finetune, generations: [before.record, after.record] })
      : `${first}\n${last}\nTrained in ${steps} steps and drawn in ${seconds.toFixed(1)} s: ${after.record.prompt}\nThe Fine-Tune is ${finetune.id}.\n`,
  );
}

async function saveSheet(drawn: readonly Drawn[], seconds: number, options: DemoOptions): Promise<void> {
  const file = resolve(options.out ?? unusedName((isTaken) => unusedFile(sheetFile, isTaken)));
  makeFolder(dirname(file));
  await writeSheet(
    file,
    drawn.map(({ data }) => data),
  );
  const generations = drawn.map(({ record }) => record);
  const prompts = generations.map(({ prompt }) => `  ${prompt}\n`).join('');
  process.stdout.write(
    options.json
      ? toJson({ file, seconds, generations })
      : `${file}\nDrawn in ${seconds.toFixed(1)} s by ${generations[0].served_by}:\n${prompts}`,
  );
}

const toJson = (result: { seconds: number } & Record<string, unknown>): string =>
  `${JSON.stringify({ ...result, seconds: Number(result.seconds.toFixed(3)) }, undefined, 2)}\n`;

const examplesOf = (options: DemoOptions): NewGeneration[] =>
  examples.map(({ prompt, seed }) => bodyOf(prompt, { model: 'shapes', seed, ...options, out: undefined }));

const bodyOf = (prompt: string, options: DemoOptions): NewGeneration => ({
  prompt,
  output_format: options.out === undefined ? undefined : formatOf(options.out),
  negative_prompt: options.negative,
  aspect_ratio: options.aspectRatio,
  seed: options.seed,
  steps: options.steps,
  cfg: options.cfg,
  model: options.model,
  scheduler: options.scheduler,
});

/** Of a file in `picturesFolder`. */
const unusedName = (name: (isTaken: (file: string) => boolean) => string): string =>
  join(
    picturesFolder,
    name((file) => existsSync(join(picturesFolder, file))),
  );

/** A file whose ending says what to save. */
function readFile(file: string): string {
  if (formatOf(file)) return file;
  throw new InvalidArgumentError('It must end in .png, .jpg, .jpeg or .webp.');
}

function readShape(text: string): string {
  if (isAspectRatio(text)) return text;
  throw new InvalidArgumentError('It must be square, portrait, landscape or a ratio from 1:4 to 4:1, such as 16:9.');
}

/** The service checks the limits. */
function readNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('It must be a number.');
  return value;
}

const program = new Command('demo')
  .description('Draws one picture, or without a prompt a sheet of eight examples, and saves it.')
  .argument('[prompt]', 'what the picture shows')
  .option('--negative <text>', 'what it must not show')
  .option('--seed <n>', 'the same seed draws the same picture', readNumber)
  .option('--steps <n>', 'steps of denoising', readNumber)
  .option('--cfg <n>', 'how closely it follows the prompt', readNumber)
  .option('--model <name>', 'an installed model; the first one where sd1.5 is not installed')
  .addOption(
    new Option('--scheduler <name>', "the sampling method; without it the model's own").choices(schedulerNames),
  )
  .option(
    '--aspect-ratio <shape>',
    'square, portrait, landscape or a ratio such as 16:9; square if none is named',
    readShape,
  )
  .option('--out <file>', 'where to save the picture, as PNG, JPEG or WebP by its name', readFile)
  .option('--train', 'trains a robot from ten pictures first, which takes some minutes, and draws it before and after')
  .option('--json', 'print the record as JSON')
  .addOption(serviceOption)
  .addHelpText('after', serviceHelp)
  .action(demo);

void runProgram(program);
