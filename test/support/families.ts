import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Pipeline, TextToImageRequest } from '@app/diffusion';

const FAMILIES = join('test', 'golden', 'families');
const MODELS = join('test', 'golden', 'models');

/** Writes the files of a family of test/golden/families to a folder, uncompressed. */
export function unpackFamily(name: string, folder: string): Promise<void> {
  return unpackFolder(join(FAMILIES, name), folder);
}

/** Tiny models with a transformer. Each consists of the folders whose names its own begins with, and mostly of Qwen3. */
const TRANSFORMER_MODELS = ['ernie-image', 'flux2-klein', 'flux2-klein-base', 'z-image', 'z-image-turbo'];

/** Writes the files of a tiny model with a transformer to a folder, uncompressed. */
export async function unpackTransformerModel(name: string, folder: string): Promise<void> {
  const own = TRANSFORMER_MODELS.filter((base) => name.startsWith(base));
  const layers = name === 'ernie-image' ? own : ['qwen3', ...own];
  for (const layer of layers) await unpackFolder(join(MODELS, layer), folder);
}

/** Writes the files of one folder to another, uncompressed. */
export async function unpackFolder(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const target = join(to, relative(from, file)).replace(/\.gz$/, '');
    await mkdir(dirname(target), { recursive: true });
    const data = await readFile(file);
    await writeFile(target, file.endsWith('.gz') ? gunzipSync(data) : data);
  }
}

/** What a recorded case asks for. */
export interface RecordedCase {
  prompt: string;
  negative_prompt: string | null;
  width: number;
  height: number;
  steps: number;
  cfg: number;
  seed?: number;
  seeds?: number[];
}

/** The request of a recorded case; the arrays that go with it are read by the tests. */
export const requestOf = (one: RecordedCase): TextToImageRequest => ({
  prompt: one.prompt,
  negativePrompt: one.negative_prompt,
  width: one.width,
  height: one.height,
  numInferenceSteps: one.steps,
  guidanceScale: one.cfg,
  seeds: one.seeds ?? [one.seed!],
});

/** Keeps the model of the last case: cases that follow each other share it, because it takes a second to load. */
export function lastOpened<T extends { pipeline: Pipeline }>() {
  let last: { key: string; opened: T } | undefined;
  afterAll(() => last?.opened.pipeline.release());
  return async (key: string, open: () => Promise<T>): Promise<T> => {
    if (last?.key === key) return last.opened;
    await last?.opened.pipeline.release();
    last = { key, opened: await open() };
    return last.opened;
  };
}
