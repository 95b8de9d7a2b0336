import type { LoadOptions } from '../model/model-session';
import { Generator } from '../random';
import { createScheduler } from '../schedulers';
import { alphasCumprod } from '../schedulers/noise-schedule';
import { predictedData } from '../schedulers/prediction';
import { readSchedulerConfig } from '../schedulers/scheduler-config';
import type { LatentShape } from '../tensor/latent-shape';
import { assertFinite } from '../tensor/not-finite';
import type { RgbImage } from '../tensor/rgb-image';
import { chunkPrompt, maxChunks, padChunks } from '../tokenizer/prompt-chunks';
import type { UnetBatch } from '../unet/unet';
import { previewLatents } from '../vae/latent-preview';
import { AbortError } from './abort-error';
import { Denoising } from './denoising';
import type { DenoisingImage } from './denoising';
import type { ModelFacts } from './model-facts';
import { loadParts } from './model-parts';
import type { ModelParts } from './model-parts';
import { checkRequest } from './text-to-image-request';
import type { GeneratedImages, GenerateHooks, TextToImageRequest } from './text-to-image-request';

/**
 * Text to image with any Stable Diffusion 1.x or 2.x ONNX folder. `generate` draws a request from start to end; `prepare`, `step` and
 * `decode` are its parts, for callers that interleave requests. Source: `StableDiffusionPipeline` of diffusers.
 */
export class StableDiffusionPipeline {
  readonly facts: ModelFacts;
  readonly provider: 'cpu' | 'cuda';
  readonly #alphas: Float32Array;

  private constructor(
    private readonly parts: ModelParts,
    { device }: LoadOptions,
  ) {
    this.facts = parts.facts;
    this.provider = device === 'cpu' ? 'cpu' : 'cuda';
    this.#alphas = alphasCumprod(readSchedulerConfig(parts.schedulerJson, { rescale_betas_zero_snr: false }));
  }

  /**
   * @throws ModelFolderError if the folder is not a model that can be drawn with
   * @throws ProviderUnavailableError if the device has no execution provider here
   */
  static async load(folder: string, options: LoadOptions): Promise<StableDiffusionPipeline> {
    return new StableDiffusionPipeline(await loadParts(folder, options), options);
  }

  /** Calls of each part and milliseconds inside them, since the model was loaded. */
  get spent() {
    const { textEncoder, unet, vaeDecoder } = this.parts.sessions;
    return { textEncoder: textEncoder.spent, unet: unet.spent, vaeDecoder: vaeDecoder.spent };
  }

  /**
   * Encodes the texts and draws the first noise.
   * @throws RangeError if the request asks for what the model cannot draw
   */
  async prepare(request: TextToImageRequest): Promise<Denoising> {
    const { width, height, guidanceScale, seeds } = request;
    const { latentChannels, vaeScaleFactor } = this.facts;
    checkRequest(request, vaeScaleFactor);
    const shape: LatentShape = [latentChannels, height / vaeScaleFactor, width / vaeScaleFactor];
    const size = shape[0] * shape[1] * shape[2];
    const images = seeds.map((seed): DenoisingImage => {
      const generator = new Generator(seed);
      const scheduler = createScheduler(request.scheduler, this.parts.schedulerJson);
      scheduler.setTimesteps(request.numInferenceSteps);
      const latents = generator.randn(size).map((noise) => noise * scheduler.initNoiseSigma);
      return { seed, generator, scheduler, latents, seen: latents, predicted: new Float32Array(size) };
    });
    const { batch, promptChunks } = await this.#encode(request, shape);
    return new Denoising(images, shape, guidanceScale, width, height, promptChunks, batch);
  }

  /** Moves every picture of the request on by one call of the U-Net. False once there is nothing left to do. */
  async step(denoising: Denoising): Promise<boolean> {
    if (denoising.done) return false;
    const { sample, timestep } = denoising.batch;
    denoising.gather(sample.values);
    timestep.values.fill(denoising.timestep);
    sample.commit();
    timestep.commit();
    denoising.scatter(await this.parts.unet.predict(denoising.batch));
    return !denoising.done;
  }

  /**
   * The pictures as they stand, decoded one by one: the decoder's memory grows with the batch, its speed does not.
   * @throws NotFiniteError if one is none
   */
  async decode({ images, shape }: Pick<Denoising, 'images' | 'shape'>): Promise<RgbImage[]> {
    const decoded: RgbImage[] = [];
    for (const { latents } of images) {
      assertFinite(latents, 'U-Net');
      decoded.push(await this.parts.vaeDecoder.decode(latents, shape));
    }
    return decoded;
  }

  /**
   * What an image will look like, from the U-Net's last prediction and without the VAE: one pixel for one position of the latents,
   * in the model's colours if its folder has a `preview.json`.
   * @throws NotFiniteError if it has no more picture to become
   */
  preview(denoising: Denoising, index: number): RgbImage {
    const image = denoising.images[index];
    const latents = denoising.done ? image.latents : this.#predictedLatents(denoising, image);
    assertFinite(latents, 'U-Net');
    return previewLatents(latents, denoising.shape, this.parts.preview);
  }

  /** @throws AbortError if `hooks.signal` was aborted; @throws RangeError as `prepare` does, NotFiniteError as `decode` does */
  async generate(request: TextToImageRequest, hooks: GenerateHooks = {}): Promise<GeneratedImages> {
    const check = () => {
      if (hooks.signal?.aborted) throw new AbortError();
    };
    check();
    const denoising = await this.prepare(request);
    for (let more = true; more;) {
      check();
      more = await this.step(denoising);
      hooks.onStep?.(denoising.stepIndex, denoising.totalSteps, denoising);
    }
    check();
    const images = await this.decode(denoising);
    const latents = denoising.images.map((image) => image.latents);
    return { images, latents, promptChunks: denoising.promptChunks, truncated: false };
  }

  /** Frees the model's memory; the pipeline is of no use afterwards. */
  async release(): Promise<void> {
    await Promise.all(Object.values(this.parts.sessions).map((session) => session.release()));
  }

  /** Embeddings of negative prompt and prompt, one row each an image, in the U-Net's input. */
  async #encode(request: TextToImageRequest, shape: LatentShape): Promise<{ batch: UnetBatch; promptChunks: number }> {
    const { tokenizer, textEncoder, unet } = this.parts;
    const guided = request.guidanceScale > 1;
    const texts = guided ? [request.negativePrompt ?? '', request.prompt] : [request.prompt];
    const chunked = texts.map((text) => chunkPrompt(text, tokenizer, request.promptWeighting));
    const promptChunks = Math.max(...chunked.map((chunks) => chunks.length));
    if (promptChunks > maxChunks)
      throw new RangeError(
        `The prompt takes ${promptChunks} chunks of ${this.facts.maxTokens - 2} tokens; at most ${maxChunks} can be drawn.`,
      );
    const embeddings = await textEncoder.encode(
      chunked.flatMap((chunks) => padChunks(chunks, promptChunks, tokenizer)),
    );
    const images = request.seeds.length;
    const { hiddenWidth, maxTokens } = this.facts;
    const batch = unet.createBatch(images * texts.length, shape, promptChunks * maxTokens, hiddenWidth);
    const { promptEmbeds } = batch;
    const rowSize = promptChunks * maxTokens * hiddenWidth;
    for (let row = 0; row < images * texts.length; row++) {
      const own = embeddings.slice(Math.floor(row / images) * promptChunks).slice(0, promptChunks);
      own.forEach((chunk, i) => promptEmbeds.values.set(chunk, row * rowSize + i * chunk.length));
    }
    promptEmbeds.commit();
    return { batch, promptChunks };
  }

  /** The picture that the last prediction means (x0), in latents; the noise itself before the first step. */
  #predictedLatents({ lastTimestep }: Denoising, { latents, seen, predicted }: DenoisingImage): Float32Array {
    if (lastTimestep === undefined) return latents;
    const index = Math.min(this.#alphas.length - 1, Math.max(0, Math.round(lastTimestep)));
    // The share of signal may be 0 at the last timestep, where dividing by it would give no number.
    const alpha = Math.sqrt(Math.max(this.#alphas[index], 1e-6));
    const { sample, output, scale } = predictedData(this.facts.predictionType, alpha, Math.sqrt(1 - alpha * alpha));
    return seen.map((value, i) => (value * sample + predicted[i] * output) * scale);
  }
}
