import { stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import {
  type Device,
  type GraphFile,
  graphIdentity,
  type ModelWidths,
  modelWidths,
  type PictureTexts,
  readModelFolder,
  rowsOfTexts,
  type SharedSessions,
  StableDiffusionPipeline,
} from '@app/diffusion';
import type { DrawnModel } from '../engine-protocol';
import type { ModelPart, ModelSize } from '../memory/model-memory';
import { memoryOfFiles, sessionBytes } from '../memory/session-memory';
import { laneCount } from '../lane';
import type { Lanes } from '../threads/lanes';
import { type LanesOfModel, LoadedModel } from './loaded-model';
import { markUsed, mergesIn, withMerge } from './merge-cache';
import { pruneMerged } from './merge-pruning';
import { mergedModel } from './merged-model';
import type { ModelSpec } from './model-registry';
import type { SideThread } from '../threads/side-thread';

export interface LoadingOptions {
  device: Device;
  intraOpNumThreads: number;
  cacheDir: string;
  /** Bytes of disk for merged models; undefined: unlimited. */
  mergedCacheBytes?: number;
  /** By which Fine-Tunes and their bases have the parts in common that a merge has not changed. */
  sharedSessions?: SharedSessions;
  /** Where small models are loaded as well. */
  lanes?: Lanes;
  /** Where text encoders, VAE decoders and upscalers are loaded in place of the engine's own thread. */
  side?: Pick<SideThread, 'open' | 'openFile'>;
  /** Whose a Fine-Tune's merge is. */
  owner?: string;
  /** Takes a sentence about something that goes on in spite of an error. */
  note?: (sentence: string) => void;
  /** Ends loading and merging at the next part. */
  signal?: Pick<AbortSignal, 'throwIfAborted'>;
}

/** A model that draws, and what the memory of its calls depends on. */
export interface DrawingModelSpec extends ModelSpec<LoadedModel> {
  widths: ModelWidths;
  /** Most rows of tokens that the texts of a picture take. */
  rowsOfTexts: (texts: PictureTexts) => number;
  /** Marks a merged model as used now. @returns whether the files have not been deleted since, to make room */
  markUsed: () => Promise<boolean>;
}

/**
 * How a model is loaded, a Fine-Tune's weights merged in.
 * @throws MergeGoneError if the merge is deleted meanwhile; else what the diffusion library throws of folders and
 * weights. Loading it throws the same.
 */
export async function describePipeline(source: DrawnModel, options: LoadingOptions): Promise<DrawingModelSpec> {
  const { cacheDir, mergedCacheBytes, owner, note, signal } = options;
  const merges = mergesIn(cacheDir);
  const folder = await mergedModel(source, merges, { owner, signal });
  // What cannot be removed now is tried again after the next merge; it is no reason not to draw.
  if (source.weights && mergedCacheBytes !== undefined)
    await pruneMerged(merges, mergedCacheBytes).catch(({ code, message }: NodeJS.ErrnoException) =>
      note?.(`Merged models that need too much room on the disk cannot be deleted: ${code ?? message}.`),
    );
  if (!source.weights) return describeFolder(folder, source, options);
  const spec = await withMerge(folder, () => describeFolder(folder, source, options));
  return { ...spec, load: () => withMerge(folder, spec.load) };
}

async function describeFolder(
  folder: string,
  source: DrawnModel,
  { cacheDir, lanes, side, note, ...options }: Omit<LoadingOptions, 'mergedCacheBytes' | 'owner'>,
): Promise<DrawingModelSpec> {
  const { textEncoder, unet, vaeDecoder, configs, tokenizer } = await readModelFolder(folder, options.device);
  const needs = {
    widths: modelWidths(configs),
    rowsOfTexts: (texts: PictureTexts) => rowsOfTexts(texts, tokenizer),
    markUsed: async () => !source.weights || markUsed(folder),
    series: seriesOf(source),
  };
  const optimizedModelDir = graphCache(cacheDir);
  const openElsewhere = side && (async (graph: GraphFile) => side.open(graph, await optimizedModelDir(graph.path)));
  const loading = { ...options, optimizedModelDir, ...(openElsewhere && { openElsewhere }) };
  const load = async (inLanes?: LanesOfModel): Promise<LoadedModel> => {
    const startedAt = performance.now();
    const pipeline = await StableDiffusionPipeline.load(folder, loading);
    return new LoadedModel(pipeline, performance.now() - startedAt, inLanes);
  };
  const weighed = await weigh({ textEncoder, unet, vaeDecoder }, source.weights !== undefined);
  const sizeWithLanes = sizeOfModel(weighed, laneCount);
  if (!lanes?.haveRoomFor(sizeWithLanes.bytes)) return { ...sizeOfModel(weighed, 0), ...needs, load };
  const open = () => lanes.open({ unet, vaeDecoder }, optimizedModelDir);
  // Room for the lanes is kept from the start, so that nothing has to make room when they are needed.
  const onNone = ({ message }: Error) => note?.(`${source.name} is drawn with one picture at a time: ${message}`);
  return { ...sizeWithLanes, ...needs, load: () => load({ open, onNone }) };
}

/** The merges of the same weights into the same model, which differ in their scale. */
function seriesOf({ hash, weights }: DrawnModel): string | undefined {
  return weights && [hash, weights.kind, weights.hash, weights.token].join('\n');
}

/** Something for each part of a model that is drawn with. */
type OfParts<T> = Record<'textEncoder' | 'unet' | 'vaeDecoder', T>;

/** What one session of each part takes. Reads the files, so it is done once. */
async function weigh(graphs: OfParts<GraphFile>, isMerged: boolean): Promise<OfParts<ModelPart>> {
  const partOf = async (graph: GraphFile): Promise<ModelPart> => ({
    id: await graphIdentity(graph),
    bytes: memoryOfFiles(await weightBytes(graph, isMerged)),
  });
  return {
    textEncoder: await partOf(graphs.textEncoder),
    unet: await partOf(graphs.unet),
    vaeDecoder: await partOf(graphs.vaeDecoder),
  };
}

/** What a model takes with copies of U-Net and decoder in so many lanes. */
function sizeOfModel(weighed: OfParts<ModelPart>, lanes: number): ModelSize {
  // A part that has copies in lanes is not what a model without them has in common with it.
  const partIn = (sessions: number, { id, bytes }: ModelPart): ModelPart => ({
    id: `${id} ${sessions}`,
    bytes: sessions * bytes,
  });
  const [textEncoder, unet, vaeDecoder] = [
    partIn(1, weighed.textEncoder),
    partIn(1 + lanes, weighed.unet),
    partIn(1 + lanes, weighed.vaeDecoder),
  ];
  const bytes = (1 + lanes) * sessionBytes + textEncoder.bytes + unet.bytes + vaeDecoder.bytes;
  return { bytes, parts: { textEncoder, unet, vaeDecoder } };
}

/**
 * Optimised graphs are kept together, except those of parts that a merge has changed: such a part has the only link to
 * its graph. Its optimised form lies in the merge's folder, counts for the size of it and is deleted with it.
 */
function graphCache(cacheDir: string) {
  const merges = mergesIn(cacheDir) + sep;
  return async (graph: string): Promise<string> => {
    const isOwn = graph.startsWith(merges) && (await stat(graph)).nlink === 1;
    return isOwn ? join(dirname(graph), 'optimized') : join(cacheDir, 'graphs');
  };
}

/**
 * Bytes of a graph's weights. Those that a merge has written take the place of others in the files that it links from
 * its base, so they are no more in all: without this, each merge would count for twice what it takes.
 */
async function weightBytes({ path, externalFiles }: GraphFile, isMerged: boolean): Promise<number> {
  const names = [path, ...externalFiles.map((name) => join(dirname(path), name))];
  const files = await Promise.all(names.map((name) => stat(name)));
  const bytesOf = (some: typeof files): number => some.reduce((sum, { size }) => sum + size, 0);
  const written = bytesOf(files.filter(({ nlink }) => nlink === 1));
  return isMerged ? Math.max(written, bytesOf(files) - written) : bytesOf(files);
}
