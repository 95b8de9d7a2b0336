import { type Provider, providerOf } from '../sessions/device';
import type { LoadOptions } from '../sessions/model-session';
import { Generator } from '../random/generator';
import { createScheduler } from '../schedulers';
import { alphasCumprod } from '../schedulers/noise-schedule';
import { predictedData } from '../schedulers/prediction';
import { readSchedulerConfig } from '../schedulers/scheduler-config';
import { assertFinite, type LatentShape, type RgbImage, toPlanes } from '../tensor/planes';
import { type PictureTexts, rowsOfTexts } from '../tokenizer/prompt-chunks';
import { previewLatents } from '../vae/latent-preview';
import { VaeEncoder } from '../vae/vae-encoder';
import { AbortError } from '../errors';
import { AppliedAdapters } from './applied-adapters';
import { checkRequest } from './check-request';
import { loadParts, type ModelParts } from './model-parts';
import { PromptEncoder } from './prompt-encoder';
import { Renderer } from './renderer';
import { beginningOf, encodeStart } from './starting-picture';
import type { ControlUse, GeneratedImages, GenerateHooks, TextToImageRequest } from './text-to-image-request';
import { type Conditioning, type PromptEmbedding, type TimedControl, Trajectory } from './trajectory';

/**
 * Text to image with any model of Stable Diffusion 1.x, 2.x or XL. `generate` draws a request from start to end;
 * `prepare`, `step` and `decode` are its parts, for callers that interleave requests. Source: `StableDiffusionPipeline`
 * and `StableDiffusionXLPipeline` of diffusers.
 */
export class StableDiffusionPipeline extends Renderer {
  readonly provider: Provider;
  private readonly alphas: Float32Array;
  private readonly prompts: PromptEncoder;
  /** Opened with the first picture that is drawn from. */
  private vaeEncoder: Promise<VaeEncoder> | undefined;

  private constructor(
    private readonly parts: ModelParts,
    private readonly options: LoadOptions,
  ) {
    super(parts.unet, parts.vaeDecoder, parts.facts);
    const { folder, textEncoders } = parts;
    this.provider = providerOf(options.device);
    this.prompts = new PromptEncoder(textEncoders, folder);
    this.alphas = alphasCumprod(readSchedulerConfig(folder.schedulerJson, { rescale_betas_zero_snr: false }));
  }

  /**
   * Loads a model; on the CPU unless `options` say otherwise.
   * @throws ModelFolderError if the folder is not a model that can be drawn with
   * @throws ProviderUnavailableError if the device has no execution provider here
   */
  static async load(folder: string, options: Partial<LoadOptions> = {}): Promise<StableDiffusionPipeline> {
    const loaded: LoadOptions = { ...options, device: options.device ?? 'cpu' };
    return new StableDiffusionPipeline(await loadParts(folder, loaded), loaded);
  }

  /** Rows that a call of the U-Net has for `rows` of pictures. */
  rowsOfCall(rows: number): number {
    return this.unet.rowsOfCall(rows);
  }

  /** Most rows that the text encoder has for these texts. */
  rowsOfTexts(texts: PictureTexts): number {
    return rowsOfTexts(texts, this.parts.textEncoders[0].tokens);
  }

  /** Calls of each part and milliseconds inside them, since the model was loaded. */
  get spent() {
    const { textEncoders, unet, vaeDecoder } = this.parts.sessions;
    const encoders = textEncoders.map(({ spent }) => spent);
    const textEncoder = {
      runs: encoders.reduce((sum, { runs }) => sum + runs, 0),
      runMs: encoders.reduce((sum, { runMs }) => sum + runMs, 0),
    };
    return { textEncoder, unet: unet.spent, vaeDecoder: vaeDecoder.spent };
  }

  /**
   * Encodes the texts and the picture to start from, and draws the first noise.
   * @returns a picture on its way for each seed
   * @throws RequestError if the request asks for what the model cannot draw
   */
  async prepare(request: TextToImageRequest): Promise<Trajectory[]> {
    const { width, height, guidanceScale, seeds } = request;
    const { latentChannels, vaeScaleFactor } = this.facts;
    const { family, schedulerJson, kind, scaling } = this.parts.folder;
    const { image, mask, imageGuidanceScale = 1.5 } = request;
    checkRequest(request, this.facts, this.parts.folder);
    const shape: LatentShape = [latentChannels, height / vaeScaleFactor, width / vaeScaleFactor];
    const adapters = new AppliedAdapters(request.adapters ?? []);
    const isChanging = kind === 'instruct-pix2pix';
    const isGuided = guidanceScale > 1 && !this.unet.embedsGuidance && !(isChanging && imageGuidanceScale < 1);
    const encoded = await this.prompts.encode(request, isGuided, adapters);
    const prompt = isChanging ? withPictureRow(encoded) : encoded;
    const start = image && (await encodeStart(image, mask, kind, await this.encoder(), vaeScaleFactor));
    const conditioning: Conditioning = {
      adapters: adapters.of('unet'),
      ...(family.hasTimeIds && { timeIds: [height, width, 0, 0, height, width] }),
      ...(request.control && { controls: request.control.map(controlOf) }),
      ...(image && mask && { overlay: { original: image, mask } }),
      imageGuidanceScale,
    };
    return seeds.map((seed) => {
      const generator = new Generator(seed);
      const scheduler = createScheduler(request.scheduler, schedulerJson);
      scheduler.setTimesteps(request.numInferenceSteps);
      const size = shape[0] * shape[1] * shape[2];
      const { latents, ...own } = beginningOf(request, kind, start, size, scheduler, generator, scaling.factor);
      const told = { ...conditioning, ...own };
      return new Trajectory(seed, shape, latents, prompt, guidanceScale, scheduler, generator, told);
    });
  }

  /**
   * The likely look of a picture, from the U-Net's last prediction and without the VAE: one pixel for one position of
   * the latents, in the model's colours if its folder has a `preview.json`.
   * @throws NotFiniteError if it has no more picture to become
   */
  preview(trajectory: Trajectory): RgbImage {
    const latents = trajectory.done ? trajectory.latents : this.predictedLatents(trajectory);
    assertFinite(latents, 'U-Net');
    return previewLatents(latents, trajectory.shape, this.parts.folder.preview);
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
    const { textEncoders, unet, vaeDecoder } = this.parts.sessions;
    const encoder = await this.vaeEncoder?.catch(() => undefined);
    const all = [...textEncoders, unet, vaeDecoder, ...(encoder ? [encoder] : [])];
    await Promise.all(all.map((session) => session.release()));
  }

  private encoder(): Promise<VaeEncoder> {
    this.vaeEncoder ??= VaeEncoder.load(this.parts.folder, this.options).catch((error: unknown) => {
      this.vaeEncoder = undefined;
      throw error;
    });
    return this.vaeEncoder;
  }

  /** The picture that the last prediction means (x0), in latents; the noise itself before the first step. */
  private predictedLatents({ lastTimestep, latents, seen, predicted }: Trajectory): Float32Array {
    if (lastTimestep === undefined) return latents;
    const index = Math.min(this.alphas.length - 1, Math.max(0, Math.round(lastTimestep)));
    // The share of signal may be 0 at the last timestep, where dividing by it would give no number.
    const alpha = Math.sqrt(Math.max(this.alphas[index], 1e-6));
    const { sample, output, scale } = predictedData(this.facts.predictionType, alpha, Math.sqrt(1 - alpha * alpha));
    return seen.map((value, i) => (value * sample + predicted[i] * output) * scale);
  }
}

/** The rows of a picture that is changed: the prompt, and for the picture alone and for neither the negative prompt. */
function withPictureRow(prompt: PromptEmbedding): PromptEmbedding {
  const ordered = <T>([negative, own]: readonly T[]): T[] =>
    own === undefined ? [negative] : [own, negative, negative];
  return { ...prompt, rows: ordered(prompt.rows), ...(prompt.pooled && { pooled: ordered(prompt.pooled) }) };
}

function controlOf({ controlNet, image, scale, start, end }: ControlUse): TimedControl {
  return { controlNet, map: toPlanes(image, (byte) => byte / 255), scale, start, end };
}
