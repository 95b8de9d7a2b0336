import { AppliedAdapters } from '../adapters/applied-adapters';
import { previewLatents } from '../autoencoders/latent-preview';
import type { LatentEncoder } from '../autoencoders/autoencoder';
import type { Conditioner, Conditioning } from '../conditioners/conditioner';
import { type ModelFolder, readModelFolder } from '../families/model-folder';
import { AbortError } from '../errors';
import { Generator } from '../random/generator';
import { createScheduler } from '../schedulers';
import { isOfFlow } from '../schedulers/scheduler-config';
import { providerOf } from '../sessions/device';
import { defaultImageGuidanceScale, isGuided } from '../denoisers/denoiser';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { assertFinite, type LatentShape, type RgbImage, toPlanes } from '../tensor/planes';
import { countOf } from '../weights/named-tensor';
import { checkRequest } from './check-request';
import { type LoadedParts, loadParts } from './loaded-parts';
import { Renderer } from './renderer';
import { beginningOf, encodeReferences, encodeStart } from './starting-picture';
import type { ControlUse, TextToImageRequest } from './text-to-image-request';
import { type PictureConditions, type TimedControl, Trajectory } from './trajectory';

export interface GenerateHooks {
  /** After every step: how many calls of the denoiser are done, of how many. */
  onStep?(step: number, total: number, trajectories: readonly Trajectory[]): void;
  /** Read before every step. */
  signal?: { readonly aborted: boolean };
}

export interface GeneratedImages {
  images: RgbImage[];
  /** Final latents of each image, before the VAE's scaling. */
  latents: Float32Array[];
  /** Rows that the prompt took; more than 1 says that it was longer than the model's text window. */
  promptChunks: number;
}

/**
 * Text to image with a model of any family. `generate` draws a request from start to end; `prepare`, `step` and
 * `decode` are its parts, for callers that interleave requests. Source: `StableDiffusionPipeline`,
 * `StableDiffusionXLPipeline`, `Flux2KleinPipeline` and `ZImagePipeline` of diffusers.
 */
export class Pipeline extends Renderer {
  /** Opened with the first picture that is drawn from. */
  private vaeEncoder: Promise<LatentEncoder> | undefined;

  private constructor(
    model: LoadedParts,
    private readonly options: LoadOptions,
    private readonly conditioner?: Conditioner,
  ) {
    super(model);
  }

  /**
   * Loads a whole model; on the CPU unless `options` say otherwise.
   * @throws ModelFolderError if the folder is not a model that can be drawn with
   * @throws ProviderUnavailableError if the device has no execution provider here
   */
  static async load(path: string, options: Partial<LoadOptions> = {}): Promise<Pipeline> {
    const loaded: LoadOptions = { ...options, device: options.device ?? 'cpu' };
    const folder = await readModelFolder(path);
    const conditioner = await folder.conditioner.open(loaded);
    try {
      return new Pipeline(await loadParts(folder, await conditioner.encodeNothing(), loaded), loaded, conditioner);
    } catch (error) {
      await conditioner.release();
      throw error;
    }
  }

  /**
   * Loads what draws of a model whose texts are encoded elsewhere, by `encodeTexts`.
   * @param conditioning with which the model is tried, of its own conditioner
   * @throws as `load` does
   */
  static async loadWithoutTexts(
    folder: ModelFolder,
    conditioning: Conditioning,
    options: LoadOptions,
  ): Promise<Pipeline> {
    return new Pipeline(await loadParts(folder, conditioning, options), options);
  }

  rowsOfCall(rows: number): number {
    return this.model.denoiser.rowsOfCall(rows);
  }

  /** Upper estimates of the bytes that a picture takes: a row of it in a call, without adapters, and to decode it. */
  bytesOf({ shape, references }: Pick<Trajectory, 'shape' | 'references'>): { row: number; decoding: number } {
    const [, height, width] = shape;
    const referencePositions = references.reduce((sum, { shape: [, rows, columns] }) => sum + rows * columns, 0);
    const { denoiser, autoencoder } = this.model.folder;
    const { scaleFactor: scale } = this.facts;
    return {
      row: denoiser.rowBytes({ height, width }, providerOf(this.options.device), referencePositions),
      decoding: autoencoder.callBytes({ height: height * scale, width: width * scale }),
    };
  }

  /** Calls of each part and milliseconds inside them, since the model was loaded. */
  get spent(): Record<'conditioner' | 'denoiser' | 'decoder', GraphSession['spent']> {
    const { denoiser, decoder } = this.model;
    const none = { runs: 0, runMs: 0 };
    return { conditioner: this.conditioner?.spent ?? none, denoiser: denoiser.spent, decoder: decoder.spent };
  }

  /**
   * Encodes the picture to start from, and the texts unless they are, and draws the first noise.
   * @param texts the request's, encoded by `encodeTexts`; needed where the texts are not of this pipeline
   * @returns a picture on its way for each seed
   * @throws RequestError if the request asks for what the model cannot draw
   */
  async prepare(request: TextToImageRequest, texts?: Conditioning): Promise<Trajectory[]> {
    const { width, height, guidanceScale, seeds } = request;
    const { latentChannels, scaleFactor } = this.facts;
    const { schedulerJson, kind, denoiser, muOf } = this.model.folder;
    const { image, mask, imageGuidanceScale = defaultImageGuidanceScale } = request;
    checkRequest(request, this.facts, this.model.folder);
    const shape: LatentShape = [latentChannels, height / scaleFactor, width / scaleFactor];
    const adapters = new AppliedAdapters(request.adapters ?? []);
    const encoded = texts ?? (await encodeTexts(this.model.folder, this.conditioner!, request));
    const prompt = kind === 'instruct-pix2pix' ? withPictureRow(encoded) : encoded;
    const start = image && (await encodeStart(image, mask, denoiser, await this.encoder(), scaleFactor));
    const references = [
      ...(start && denoiser.takesReferences ? [{ latents: start.image.mean, shape }] : []),
      ...(await encodeReferences(request.references ?? [], () => this.encoder())),
    ];
    const conditions: PictureConditions = {
      prompt,
      guidanceScale,
      adapters: adapters.of(denoiser.part),
      ...(request.control && { controls: request.control.map(controlOf) }),
      references,
      ...(image && mask && { overlay: { original: image, mask } }),
      imageGuidanceScale,
    };
    const size = { tokens: (shape[1] * shape[2]) / (denoiser.patch ?? 1) ** 2, ...(muOf && { muOf }) };
    const ofLatents = { kind, size: countOf(shape), isOfFlow: isOfFlow(schedulerJson) };
    return seeds.map((seed) => {
      const generator = new Generator(seed);
      const scheduler = createScheduler(request.scheduler, schedulerJson);
      scheduler.setTimesteps(request.numInferenceSteps, size);
      const { latents, ...own } = beginningOf(request, ofLatents, start, scheduler, generator);
      return new Trajectory(shape, latents, scheduler, generator, { ...conditions, ...own });
    });
  }

  /**
   * The likely look of a picture, from the last prediction and without the VAE: one pixel for one position of the
   * latents, in the model's colours if its folder has a `preview.json`.
   * @throws NotFiniteError if it has no more picture to become
   */
  preview(trajectory: Trajectory): RgbImage {
    const latents = trajectory.expectedLatents();
    assertFinite(latents, this.model.folder.denoiser.title);
    return previewLatents(latents, trajectory.shape, this.model.folder.preview);
  }

  /**
   * @throws AbortError if `hooks.signal` was aborted;
   * @throws RequestError as `prepare` does, NotFiniteError as `decode` does
   */
  async generate(request: TextToImageRequest, hooks: GenerateHooks = {}): Promise<GeneratedImages> {
    const check = () => {
      if (hooks.signal?.aborted) throw new AbortError();
    };
    check();
    const trajectories = await this.prepare(request);
    const [{ prompt, totalSteps }] = trajectories;
    for (let step = 1; step <= totalSteps; step++) {
      check();
      await this.step(trajectories);
      hooks.onStep?.(step, totalSteps, trajectories);
    }
    const images: RgbImage[] = [];
    // One at a time: the decoder's memory grows with the batch, its speed does not.
    for (const trajectory of trajectories) {
      check();
      images.push(await this.decode(trajectory));
    }
    return { images, latents: trajectories.map(({ latents }) => latents), promptChunks: prompt.chunks };
  }

  /** Frees the model's memory; the pipeline is of no use afterwards. */
  async release(): Promise<void> {
    const { denoiser, decoder } = this.model;
    const encoder = await this.vaeEncoder?.catch(() => undefined);
    const all = [denoiser, decoder, encoder, this.conditioner].filter((part) => part !== undefined);
    await Promise.all(all.map((part) => part.release()));
  }

  private encoder(): Promise<LatentEncoder> {
    this.vaeEncoder ??= this.model.folder.autoencoder.openEncoder(this.options).catch((error: unknown) => {
      this.vaeEncoder = undefined;
      throw error;
    });
    return this.vaeEncoder;
  }
}

/** The texts of a request, encoded by the conditioner of a model. @throws RequestError if one is too long */
export function encodeTexts(
  { denoiser }: Pick<ModelFolder, 'denoiser'>,
  conditioner: Conditioner,
  request: TextToImageRequest,
): Promise<Conditioning> {
  return conditioner.encode(request, isGuided(denoiser, request), new AppliedAdapters(request.adapters ?? []));
}

/**
 * The rows of a picture that is changed: one with the prompt, and two with the negative prompt, for the picture alone
 * and for neither.
 */
function withPictureRow(prompt: Conditioning): Conditioning {
  if (prompt.rows.length === 1) return prompt;
  const order = [1, 0, 0];
  return { ...prompt, rows: order.map((i) => prompt.rows[i]), lengths: order.map((i) => prompt.lengths[i]) };
}

function controlOf({ controlNet, image, scale, start, end }: ControlUse): TimedControl {
  return { controlNet, map: toPlanes(image, (byte) => byte / 255), scale, start, end };
}
