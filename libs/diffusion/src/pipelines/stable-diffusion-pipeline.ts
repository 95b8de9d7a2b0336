import { type Provider, providerOf } from '../model/device';
import type { GraphSession, LoadOptions } from '../model/model-session';
import { Generator } from '../random/generator';
import { createScheduler } from '../schedulers';
import { alphasCumprod } from '../schedulers/noise-schedule';
import { predictedData } from '../schedulers/prediction';
import { readSchedulerConfig } from '../schedulers/scheduler-config';
import { assertFinite, type LatentShape, type RgbImage } from '../tensor/planes';
import { chunkPrompt, maxChunks, padChunks, type PictureTexts, rowsOfTexts } from '../tokenizer/prompt-chunks';
import { previewLatents } from '../vae/latent-preview';
import { AbortError, RequestError } from '../errors';
import { loadParts, type ModelParts } from './model-parts';
import { Renderer } from './renderer';
import {
  checkRequest,
  type GeneratedImages,
  type GenerateHooks,
  type TextToImageRequest,
} from './text-to-image-request';
import { type PromptEmbedding, Trajectory } from './trajectory';

/**
 * Text to image with any Stable Diffusion 1.x or 2.x ONNX folder. `generate` draws a request from start to end;
 * `prepare`, `step` and `decode` are its parts, for callers that interleave requests. Source:
 * `StableDiffusionPipeline` of diffusers.
 */
export class StableDiffusionPipeline extends Renderer {
  readonly provider: Provider;
  private readonly alphas: Float32Array;

  private constructor(
    private readonly parts: ModelParts,
    { device }: LoadOptions,
  ) {
    super(parts.unet, parts.vaeDecoder, parts.facts);
    this.provider = providerOf(device);
    this.alphas = alphasCumprod(readSchedulerConfig(parts.schedulerJson, { rescale_betas_zero_snr: false }));
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
    return rowsOfTexts(texts, this.parts.tokenizer);
  }

  /** Calls of each part and milliseconds inside them, since the model was loaded. */
  get spent() {
    const { textEncoder, unet, vaeDecoder } = this.parts.sessions;
    return { textEncoder: textEncoder.spent, unet: unet.spent, vaeDecoder: vaeDecoder.spent };
  }

  /**
   * Encodes the texts and draws the first noise.
   * @returns a picture on its way for each seed
   * @throws RequestError if the request asks for what the model cannot draw
   */
  async prepare(request: TextToImageRequest): Promise<Trajectory[]> {
    const { width, height, guidanceScale, seeds } = request;
    const { latentChannels, vaeScaleFactor } = this.facts;
    checkRequest(request, this.facts);
    const shape: LatentShape = [latentChannels, height / vaeScaleFactor, width / vaeScaleFactor];
    const prompt = await this.encode(request);
    return seeds.map((seed) => {
      const generator = new Generator(seed);
      const scheduler = createScheduler(request.scheduler, this.parts.schedulerJson);
      scheduler.setTimesteps(request.numInferenceSteps);
      const noise = generator.randn(shape[0] * shape[1] * shape[2]);
      const latents = noise.map((value) => value * scheduler.initNoiseSigma);
      return new Trajectory(seed, shape, latents, prompt, guidanceScale, scheduler, generator);
    });
  }

  /** Another renderer of this model's pictures. @param sessions its U-Net and its decoder, loaded elsewhere */
  rendererOver(sessions: { unet: GraphSession; vaeDecoder: GraphSession }): Renderer {
    return new Renderer(this.unet.over(sessions.unet), this.vaeDecoder.over(sessions.vaeDecoder), this.facts);
  }

  /**
   * What a picture will look like, from the U-Net's last prediction and without the VAE: one pixel for one position of
   * the latents, in the model's colours if its folder has a `preview.json`.
   * @throws NotFiniteError if it has no more picture to become
   */
  preview(trajectory: Trajectory): RgbImage {
    const latents = trajectory.done ? trajectory.latents : this.predictedLatents(trajectory);
    assertFinite(latents, 'U-Net');
    return previewLatents(latents, trajectory.shape, this.parts.preview);
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
    await Promise.all(Object.values(this.parts.sessions).map((session) => session.release()));
  }

  /** Embeddings of negative prompt and prompt, of the prompt alone without guidance. */
  private async encode(request: TextToImageRequest): Promise<PromptEmbedding> {
    const { tokenizer, textEncoder } = this.parts;
    const guided = request.guidanceScale > 1 && !this.unet.embedsGuidance;
    const texts = guided ? [request.negativePrompt ?? '', request.prompt] : [request.prompt];
    const chunked = texts.map((text) => chunkPrompt(text, tokenizer, request.promptWeighting));
    const chunks = Math.max(...chunked.map(({ length }) => length));
    const most = Math.min(maxChunks, this.facts.fixedChunks ?? maxChunks);
    if (chunks > most)
      throw new RequestError(
        `The prompt takes ${chunks} chunks of ${this.facts.maxTokens - 2} tokens; at most ${most} can be drawn.`,
      );
    const embeddings = await textEncoder.encode(chunked.flatMap((parts) => padChunks(parts, chunks, tokenizer)));
    const rows = texts.map((_, text) => joined(embeddings.slice(text * chunks, (text + 1) * chunks)));
    return { chunks, tokens: chunks * this.facts.maxTokens, rows };
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

function joined(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
