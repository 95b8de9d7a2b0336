import { cures, ModelFolderError, OutOfMemoryError, ProviderUnavailableError } from '../errors';
import { type ModelFolder, readModelFolder } from '../families/model-folder';
import { isGraphFault } from '../sessions/graph-fault';
import { type GraphSession, type LoadOptions, ModelSession } from '../sessions/model-session';
import type { PlacedGraph } from '../sessions/placed-graph';
import { areFinite, type LatentShape, notFinite } from '../tensor/planes';
import { ClipTextEncoder } from '../text-encoder/clip-text-encoder';
import { Unet } from '../unet/unet';
import { checkPreview } from '../vae/latent-preview';
import { VaeDecoder } from '../vae/vae-decoder';
import { factsOf, type ModelFacts } from './model-facts';
import { graphsOf } from './model-graphs';
import type { LoadedTextEncoder } from './prompt-encoder';
import { noAdapters } from './row-adapters';

/** A loaded model, its parts known to fit one another. */
export interface ModelParts {
  folder: ModelFolder;
  facts: ModelFacts;
  textEncoders: readonly LoadedTextEncoder[];
  unet: Unet;
  vaeDecoder: VaeDecoder;
  sessions: { textEncoders: readonly GraphSession[]; unet: GraphSession; vaeDecoder: GraphSession };
}

/** Edge of the latents that a model is tried with: the smallest that a U-Net with three halvings can take. */
const trialEdge = 8;

/** Opens the folder's sessions, tries every part once on a small input, and releases all of it if anything is wrong. */
export async function loadParts(path: string, options: LoadOptions): Promise<ModelParts> {
  const folder = await readModelFolder(path);
  const graphs = await graphsOf(folder, options);
  const opened: GraphSession[] = [];
  const open = async (graph: PlacedGraph) => {
    options.signal?.throwIfAborted();
    const session = await ModelSession.open(graph, options);
    opened.push(session);
    return session;
  };
  try {
    const textEncoders: GraphSession[] = [];
    for (const graph of graphs.textEncoders) textEncoders.push(await open(graph));
    const unet = await open(graphs.unet);
    const vaeDecoder = await open(graphs.vaeDecoder);
    return await joinParts(folder, { textEncoders, unet, vaeDecoder }, options);
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
  const textEncoders = folder.textEncoders.map(({ part, tokens }, i) => {
    const [vocabulary] = folder.tensors.get(part)!.get('text_model.embeddings.token_embedding.weight')!.shape;
    if (tokens.vocabularySize > vocabulary)
      throw new ModelFolderError(
        folder.files.get(part)!,
        `knows ${vocabulary} tokens, and its tokenizer has ${tokens.vocabularySize}`,
        cures.oneModel,
      );
    return { part, tokens, vocabulary, encoder: new ClipTextEncoder(sessions.textEncoders[i]) };
  });
  const unet = new Unet(sessions.unet, device);
  const vaeDecoder = new VaeDecoder(sessions.vaeDecoder, folder.scaling);
  const { latentChannels } = vaeDecoder;
  const width = textEncoders.reduce((sum, { encoder }) => sum + encoder.width, 0);
  if (width !== unet.hiddenWidth)
    throw new ModelFolderError(
      folder.files.get('unet')!,
      `takes embeddings ${unet.hiddenWidth} wide, and the text encoders give ${width}`,
      cures.oneModel,
    );
  checkPreview(`${folder.path}/preview.json`, folder.preview, latentChannels);

  const shape: LatentShape = [latentChannels, trialEdge, trialEdge];
  const { embedding, pooled } = await trialEmbedding(folder, textEncoders);
  const trial = async (timestep: number, sample: Float32Array) => {
    const row = { sample, timestep, embedding, pooled, guidanceScale: 1, adapters: noAdapters };
    return (await unet.predict([{ ...row, timeIds: [64, 64, 0, 0, 64, 64] }], shape))[0];
  };
  const values = unet.inChannels * trialEdge ** 2;
  const seen = Float32Array.from({ length: values }, (_, i) => Math.sin(i));
  const file = folder.files.get('unet')!;
  // In half precision a sound model may overflow for one input and not for another, so it gets a second that is easier.
  const isSound = await tried(file, async () => {
    if (areFinite(await trial(999, seen))) return true;
    return areFinite(await trial(1, new Float32Array(values)));
  });
  if (!isSound) throw new ModelFolderError(file, notFinite, cures.otherWeights);
  const vae = folder.files.get('vae')!;
  const decoded = await tried(vae, () =>
    vaeDecoder.decodePlanes(new Float32Array(latentChannels * trialEdge ** 2), shape),
  );
  if (!areFinite(decoded.planes)) throw new ModelFolderError(vae, notFinite, cures.otherWeights);
  const facts = factsOf(folder, { latentChannels, vaeScaleFactor: decoded.height / trialEdge, hiddenWidth: width });
  return { folder, facts, textEncoders, unet, vaeDecoder, sessions };
}

/** The embedding of no text. */
async function trialEmbedding(
  folder: ModelFolder,
  encoders: readonly LoadedTextEncoder[],
): Promise<{ embedding: Float32Array; pooled?: Float32Array }> {
  let pooled: Float32Array | undefined;
  let length = 0;
  for (const { part, encoder, tokens } of encoders) {
    const file = folder.files.get(part)!;
    const [row] = await tried(file, () => encoder.encode([{ inputIds: tokens.frame([]) }]));
    if (!areFinite(row.states)) throw new ModelFolderError(file, notFinite, cures.otherWeights);
    pooled = row.pooled ?? pooled;
    length += row.states.length;
  }
  return { embedding: new Float32Array(length), ...(pooled && { pooled }) };
}

/** A part's first run: what the graph is at fault for is said of its weights. */
async function tried<T>(file: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const isOther = error instanceof OutOfMemoryError || error instanceof ProviderUnavailableError;
    if (isOther || error instanceof ModelFolderError || !isGraphFault(error)) throw error;
    const [reason] = (error as Error).message.split('\n');
    throw new ModelFolderError(file, `cannot be run: ${reason.slice(0, 300)}`, cures.installAgain);
  }
}
