import { cures, ModelFolderError, OutOfMemoryError, ProviderUnavailableError } from '../errors';
import { isGraphFault } from '../model/graph-fault';
import type { GraphFile } from '../model/graph-file';
import { type ModelFolder, readModelFolder } from '../model/model-folder';
import { type GraphSession, type LoadOptions, ModelSession } from '../model/model-session';
import { fixedSizeOf } from '../model/parts-fit';
import { areFinite, type LatentShape, notFinite } from '../tensor/planes';
import { ClipTextEncoder } from '../text-encoder/clip-text-encoder';
import { hasCallsInPowersOfTwo, Unet } from '../unet/unet';
import { guidanceWidth } from '../model/graph-values';
import { VaeDecoder } from '../vae/vae-decoder';
import { agreedWidths, factsOf, type LoadedParts, type ModelFacts, vaeScaling } from './model-facts';

/** A loaded model, its parts known to fit one another. */
export interface ModelParts extends LoadedParts, Pick<ModelFolder, 'tokenizer' | 'schedulerJson' | 'preview'> {
  facts: ModelFacts;
  sessions: { textEncoder: GraphSession; unet: GraphSession; vaeDecoder: GraphSession };
}

/** Edge of the latents that a model is tried with: the smallest that a U-Net with three halvings can take. */
const trialEdge = 8;

/** Opens the folder's sessions, tries every part once on a small input, and releases all of it if anything is wrong. */
export async function loadParts(path: string, options: LoadOptions): Promise<ModelParts> {
  const folder = await readModelFolder(path, options.device);
  const opened: GraphSession[] = [];
  const openHere = (graph: GraphFile) => ModelSession.open(graph, options);
  const open = async (graph: GraphFile, by: (graph: GraphFile) => Promise<GraphSession>) => {
    options.signal?.throwIfAborted();
    const session = await by(graph);
    opened.push(session);
    return session;
  };
  const { openElsewhere = openHere } = options;
  try {
    const sessions = {
      textEncoder: await open(folder.textEncoder, openElsewhere),
      unet: await open(folder.unet, openHere),
      vaeDecoder: await open(folder.vaeDecoder, openElsewhere),
    };
    return await joinParts(folder, sessions, options);
  } catch (error) {
    await Promise.all(opened.map((session) => session.release()));
    throw error;
  }
}

async function joinParts(
  folder: ModelFolder,
  sessions: ModelParts['sessions'],
  { device }: LoadOptions,
): Promise<ModelParts> {
  const textEncoder = new ClipTextEncoder(sessions.textEncoder);
  const ofUnet = { guidanceWidth: guidanceWidth(folder.configs.unet), inPowersOfTwo: hasCallsInPowersOfTwo(device) };
  const unet = new Unet(sessions.unet, ofUnet);
  const vaeDecoder = new VaeDecoder(sessions.vaeDecoder, vaeScaling(folder.configs.vaeDecoder));
  const loaded = { textEncoder, unet, vaeDecoder };
  const { latentChannels, hiddenWidth } = agreedWidths(folder, loaded);
  const fixed = fixedSizeOf(folder);
  const shape: LatentShape = [latentChannels, fixed.height ?? trialEdge, fixed.width ?? trialEdge];

  const embedding = await trialEmbedding(folder, textEncoder, folder.tokenizer.maxLength * hiddenWidth);
  await tried(folder.unet, () => unet.probe(shape, embedding, hiddenWidth));
  const latents = new Float32Array(shape[0] * shape[1] * shape[2]);
  const decoded = await tried(folder.vaeDecoder, () => vaeDecoder.decodePlanes(latents, shape));
  refuseNotFinite(folder.vaeDecoder, decoded.planes);
  const scale = decoded.height / shape[1];
  if (!Number.isInteger(scale) || decoded.width !== scale * shape[2])
    throw new ModelFolderError(folder.vaeDecoder.path, 'does not enlarge latents by a whole number', cures.exportAgain);
  const { tokenizer, schedulerJson, preview } = folder;
  return { ...loaded, facts: factsOf(folder, loaded, scale), sessions, tokenizer, schedulerJson, preview };
}

/** The embedding of no text. */
async function trialEmbedding(
  { textEncoder: graph, tokenizer }: ModelFolder,
  textEncoder: ClipTextEncoder,
  length: number,
): Promise<Float32Array> {
  const inputIds = tokenizer.frame([]);
  const [embedding] = await tried(graph, () => textEncoder.encode([{ inputIds }]));
  const foreign = 'gives embeddings of a shape that the U-Net does not take';
  if (embedding.length !== length) throw new ModelFolderError(graph.path, foreign, cures.oneExport);
  refuseNotFinite(graph, embedding);
  return embedding;
}

function refuseNotFinite({ path }: GraphFile, values: Float32Array): void {
  if (!areFinite(values)) throw new ModelFolderError(path, notFinite, cures.otherWeights);
}

/** A graph may load and still not fit what the others give it, which only a run shows. */
async function tried<T>({ path }: GraphFile, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if ([ModelFolderError, ProviderUnavailableError, OutOfMemoryError].some((type) => error instanceof type))
      throw error;
    if (!isGraphFault(error)) throw error;
    const [line] = (error as Error).message.trim().split('\n');
    throw new ModelFolderError(
      path,
      `failed on a trial run: ${line.replace(/(?<!\.)\.+$/, '').slice(0, 300)}`,
      cures.exportAgain,
    );
  }
}
