import type { Stats } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import {
  cures,
  entriesBelow,
  type GraphFile,
  isNoFile,
  isSpecial,
  readJsonFile,
  readModelFolder,
} from '@app/diffusion/files';
import { besideParts, findModelFiles, graphParts, isSafePath, type ModelFile } from './model-files';
import { explainRefusal, ModelStoreError } from './model-store-error';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** The content of a model folder, determined without loading its weights. */
export interface ModelLayout {
  /** The files that pictures depend on, relative to the folder, sorted. Other files do not matter. */
  files: string[];
  /** Operators that only CUDA supports, in graphs without a plain variant; empty when the CPU can run the model. */
  cudaOnly: string[];
  fixed: FixedShape;
}

/**
 * Every file below a folder, relative, with forward slashes; symbolic links are followed.
 * @throws ModelStoreError `InvalidModel` if there are far more than a model has
 */
export async function listFolder(folder: string): Promise<string[]> {
  const entries = await explainRefusal(folder, () => entriesBelow(folder));
  return entries.filter(({ found }) => found?.isFile()).map(({ path }) => path);
}

/** A file of a model, and what its folder says of it. */
interface FoundFile extends ModelFile {
  found: Stats;
}

/**
 * The files of a model that a folder has, and a sentence for each that is missing.
 * @throws ModelStoreError `InvalidModel` also for a pipe, a socket or a device in place of one, which nobody may open
 */
export async function findFilesIn(folder: string): Promise<{ files: FoundFile[]; faults: string[] }> {
  const entries = await explainRefusal(folder, () => entriesBelow(folder));
  const there = new Map(
    entries.flatMap(({ path, found }) => (found && !found.isDirectory() ? [[path, found] as const] : [])),
  );
  const model = findModelFiles([...there.keys()]);
  const files = model.files.map((file) => ({ ...file, found: there.get(file.from)! }));
  const wrong = files.filter(({ found }) => isSpecial(found));
  if (wrong.length === 0) return { ...model, files };
  const sentences = wrong.map(({ from }) => `${from} ${isNoFile}. ${cures.installAgain}`);
  throw new ModelStoreError('InvalidModel', sentences.join('\n'));
}

/** Counts the changes of what {@link readLayout} refuses, so that a folder which passed an earlier one is read again. */
export const layoutRules = 4;

/**
 * Checks that a folder has every file of a loadable model and that its graphs and their external data are complete.
 * @throws ModelStoreError `InvalidModel`, which names each file at fault and the reason, and says what to do.
 */
export async function readLayout(folder: string): Promise<ModelLayout> {
  const { files: found, faults } = await findFilesIn(folder);
  await refuseMissing(folder, faults);
  const files = found.map(({ from }) => from);
  const isFused = (path: string): boolean => path.endsWith('/model_cuda.onnx');
  const hasPlain = graphParts.every((part) =>
    files.some((path) => path.startsWith(`${part}/`) && path.endsWith('.onnx') && !isFused(path)),
  );
  const plain = hasPlain ? await readGraphs(folder, 'cpu') : [];
  const fused = files.some(isFused) ? await readGraphs(folder, 'cuda:0') : [];

  const isData = (path: string): boolean =>
    graphParts.some((part) => path.startsWith(`${part}/`)) && !/\.(onnx|json)$/.test(path);
  const data = new Set([...plain, ...fused].flatMap((graph) => graph.externalFiles));
  const needed = (hasPlain ? plain : fused).flatMap((graph) => graph.cudaOperator ?? []);
  return {
    files: files.filter((path) => !besideParts.includes(path) && (!isData(path) || data.has(path))).sort(),
    cudaOnly: [...new Set(needed)].sort(),
    fixed: hasPlain ? await fixedShape(folder, plain) : {},
  };
}

/**
 * @param faults a sentence for each file that the folder lacks
 * @throws ModelStoreError `InvalidModel` if there is one, with what is wrong in the parts of which nothing is missing
 */
async function refuseMissing(folder: string, faults: readonly string[]): Promise<void> {
  if (faults.length === 0) return;
  const partOf = (fault: string): string => /^[^/ ]*/.exec(fault)![0];
  const parts = faults.map(partOf);
  const refusal: unknown = await readGraphs(folder, 'cuda:0').catch((error: unknown) => error);
  const further = refusal instanceof ModelStoreError ? refusal.message.split('\n') : [];
  const all = [...faults, ...further.filter((fault) => !parts.includes(partOf(fault)))];
  throw new ModelStoreError('InvalidModel', all.join('\n'));
}

/** What the graphs of a model were exported for, where they take nothing else. */
export interface FixedShape {
  /** Pixels of a picture. */
  width?: number;
  height?: number;
  /** Rows of tokens of a prompt. */
  chunks?: number;
}

/** Each block of the VAE but the last doubles the edge; every Stable Diffusion 1.x and 2.x has four. */
const defaultBlocks = 4;

/** The latents' size is in pixels, as the pipeline measures it by decoding. */
async function fixedShape(folder: string, graphs: readonly ReadGraph[]): Promise<FixedShape> {
  const latents = graphs.reduce<ReadGraph['fixedLatents']>(
    (sizes, { fixedLatents }) => ({ ...sizes, ...fixedLatents }),
    {},
  );
  const chunks = graphs.find(({ fixedChunks }) => fixedChunks !== undefined)?.fixedChunks;
  const config = await readJsonFile(join(folder, 'vae_decoder', 'config.json'), { optional: true });
  const blocks = config?.block_out_channels;
  const factor = 2 ** ((Array.isArray(blocks) ? blocks.length : defaultBlocks) - 1);
  return {
    ...(latents.width !== undefined && { width: latents.width * factor }),
    ...(latents.height !== undefined && { height: latents.height * factor }),
    ...(chunks !== undefined && { chunks }),
  };
}

interface ReadGraph extends Pick<GraphFile, 'cudaOperator' | 'fixedLatents'> {
  /** Relative to the model. */
  externalFiles: string[];
  fixedChunks: number | undefined;
}

/** The graphs that the pipeline would load on this device, and their external data, relative to the model. */
async function readGraphs(folder: string, device: Parameters<typeof readModelFolder>[1]): Promise<ReadGraph[]> {
  const { textEncoder, unet, vaeDecoder, tokenizer } = await explainRefusal(folder, () =>
    readModelFolder(folder, device),
  );
  return [textEncoder, unet, vaeDecoder].map(({ path, externalFiles, fixedTokens, cudaOperator, fixedLatents }) => {
    const graph = relative(folder, path).replaceAll(sep, '/');
    const outside = externalFiles.find((name) => !isSafePath(name));
    if (outside !== undefined)
      throw new ModelStoreError(
        'InvalidModel',
        `${graph} keeps weights outside its folder, in ${outside}. ${cures.exportAgain}`,
      );
    return {
      externalFiles: externalFiles.map((name) => `${dirname(graph)}/${name}`),
      cudaOperator,
      fixedLatents,
      fixedChunks: fixedTokens && Math.max(1, Math.floor(fixedTokens / tokenizer.maxLength)),
    };
  });
}

/**
 * Checks a folder before gigabytes of it are copied, under the names that its files will have: by way of links to them.
 * Where no links can be made it is left to the check of the copy.
 * @throws ModelStoreError `InvalidModel`
 */
export async function checkSource(source: string): Promise<void> {
  const { files, faults } = await findFilesIn(source);
  const links = await mkdtemp(join(tmpdir(), 'darkroom-model-')).catch(() => undefined);
  if (links === undefined) return;
  try {
    if (!(await areLinked(files, source, links))) return;
    await refuseMissing(links, faults);
    await readLayout(links);
  } finally {
    await rm(links, { recursive: true, force: true });
  }
}

async function areLinked(files: readonly ModelFile[], source: string, links: string): Promise<boolean> {
  try {
    for (const { from, to } of files) {
      await mkdir(dirname(join(links, to)), { recursive: true });
      await symlink(join(source, from), join(links, to));
    }
    return true;
  } catch {
    return false;
  }
}
