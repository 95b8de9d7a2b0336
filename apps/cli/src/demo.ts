import 'reflect-metadata';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { loadConfig } from '@app/config';
import { Command, InvalidArgumentError } from 'commander';
import type { Generation, NewGeneration } from '../../../packages/client/src';
import { GenerationClient } from './generation-client';
import { formatOf, pictureFile } from './picture-file';
import { CliError, runProgram } from './run-program';
import { useService } from './running-service';
import { StepBar } from './step-bar';

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
}

/** Folder of pictures without a name, in the one from which the command was called. */
const picturesFolder = 'pictures';

/** Draws one picture and saves it. When interrupted, it cancels the drawing and stops what it started. */
async function demo(prompt: string, options: DemoOptions): Promise<void> {
  const config = loadConfig(process.env);
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort());
  const service = await useService(config, (line) => void process.stderr.write(`${line}\n`));
  try {
    interruption.signal.throwIfAborted();
    const startedAt = performance.now();
    const client = new GenerationClient(service.url, service.token);
    const { record, data } = await draw(client, bodyOf(prompt, options), interruption.signal);
    const seconds = (performance.now() - startedAt) / 1000;
    const extension = extname(new URL(record.images[0]).pathname).slice(1) || 'png';
    const file = resolve(options.out ?? unusedName(prompt, record.seed, extension));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, data);
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ file, seconds: Number(seconds.toFixed(3)), generation: record }, undefined, 2)}\n`
        : `${file}\nDrawn in ${seconds.toFixed(1)} s by ${record.served_by} with seed ${record.seed}.\n`,
    );
  } catch (error) {
    throw interruption.signal.aborted ? new CliError('Interrupted.') : error;
  } finally {
    await service.release();
  }
}

async function draw(
  client: GenerationClient,
  body: NewGeneration,
  signal: AbortSignal,
): Promise<{ record: Generation; data: Uint8Array }> {
  const bar = new StepBar(process.stderr);
  let id: string | undefined;
  try {
    const created = await client.create(body);
    id = created.id;
    bar.say(`Waiting for the first of ${created.steps} steps …`);
    const record = await client.follow(id, (step, total) => bar.show(step, total), signal);
    if (record.status !== 'succeeded') throw new CliError(record.error ?? `The drawing was ${record.status}.`);
    return { record, data: await client.download(record.images[0]) };
  } catch (error) {
    if (signal.aborted && id) await client.cancel(id).catch(() => undefined);
    throw error;
  } finally {
    bar.end();
  }
}

const bodyOf = (prompt: string, { negative, aspectRatio, out, ...options }: DemoOptions): NewGeneration => ({
  prompt,
  ...(out !== undefined && { output_format: formatOf(out) }),
  ...(negative !== undefined && { negative_prompt: negative }),
  ...(aspectRatio !== undefined && { aspect_ratio: aspectRatio }),
  ...(options.seed !== undefined && { seed: options.seed }),
  ...(options.steps !== undefined && { steps: options.steps }),
  ...(options.cfg !== undefined && { cfg: options.cfg }),
  ...(options.model !== undefined && { model: options.model }),
  ...(options.scheduler !== undefined && { scheduler: options.scheduler }),
});

const unusedName = (prompt: string, seed: number, extension: string): string =>
  join(
    picturesFolder,
    pictureFile(prompt, seed, extension, (name) => existsSync(join(picturesFolder, name))),
  );

/** A file whose ending says what to save. */
function readFile(file: string): string {
  if (formatOf(file)) return file;
  throw new InvalidArgumentError('It must end in .png, .jpg, .jpeg or .webp.');
}

/** The service checks the limits. */
function readNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('It must be a number.');
  return value;
}

const program = new Command('demo')
  .description('Draws one picture with the running service, or with one started for it, and saves it.')
  .argument('<prompt>', 'what the picture shows')
  .option('--negative <text>', 'what it must not show')
  .option('--seed <n>', 'the same seed draws the same picture', readNumber)
  .option('--steps <n>', 'steps of denoising', readNumber)
  .option('--cfg <n>', 'how closely it follows the prompt', readNumber)
  .option('--model <name>', 'sd1.5, sd2.1 or another installed model')
  .option('--scheduler <name>', 'the sampling method')
  .option('--aspect-ratio <shape>', 'square, portrait or landscape')
  .option('--out <file>', 'where to save the picture, as PNG, JPEG or WebP by its name', readFile)
  .option('--json', 'print the record as JSON')
  .action(demo);

void runProgram(program);
