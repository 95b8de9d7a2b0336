import type { Denoising, RgbImage, SchedulerName, StableDiffusionPipeline } from '@app/diffusion';
import { AbortError } from '@app/diffusion';
import { planBatches } from './batch-plan';
import type { DrawingProgress, DrawingStarted, DrawRequest } from './engine-protocol';
import { seedOf } from './seed';

/** What drawing needs of a pipeline. */
export type Painter = Pick<StableDiffusionPipeline, 'facts' | 'prepare' | 'step' | 'decode' | 'preview'>;

/** Who is told how a drawing goes, and asked whether it is still wanted. */
export interface DrawingHooks {
  aborted(): boolean;
  started(started: DrawingStarted): void;
  progress(progress: DrawingProgress): void;
}

/** A preview costs a pass over the latents, so there are a few a second at most. */
const previewIntervalMs = 400;

/**
 * Draws all pictures of a request, batch after batch.
 * @param largest how many are drawn at once
 * @returns the pictures in order
 * @throws AbortError at the first step after `hooks.aborted()` turned true
 * @throws RangeError if the model cannot draw the request
 */
export async function drawPictures(
  painter: Painter,
  request: DrawRequest,
  largest: number,
  hooks: DrawingHooks,
): Promise<RgbImage[]> {
  const check = (): void => {
    if (hooks.aborted()) throw new AbortError();
  };
  const batches = planBatches(request.numImages, largest);
  const pictures: RgbImage[] = [];
  let previewedAt = performance.now();
  for (const [done, size] of batches.entries()) {
    check();
    const denoising = await painter.prepare(batchRequest(request, pictures.length, size));
    const { promptChunks, totalSteps } = denoising;
    if (done === 0) hooks.started({ promptChunks, scheduler: request.scheduler ?? painter.facts.scheduler });
    for (let more = true; more;) {
      check();
      more = await painter.step(denoising);
      const now = performance.now();
      const isPreviewDue = more && now - previewedAt >= previewIntervalMs;
      if (isPreviewDue) previewedAt = now;
      hooks.progress({
        step: done * totalSteps + denoising.stepIndex,
        total: batches.length * totalSteps,
        ...(isPreviewDue && { preview: painter.preview(denoising, 0) }),
      });
    }
    pictures.push(...(await decodeEach(painter, denoising, check)));
  }
  return pictures;
}

/** Decodes one picture at a time, so that a drawing that is no longer wanted ends between two of them. */
async function decodeEach(painter: Painter, { images, shape }: Denoising, check: () => void): Promise<RgbImage[]> {
  const pictures: RgbImage[] = [];
  for (const image of images) {
    check();
    pictures.push(...(await painter.decode({ images: [image], shape })));
  }
  return pictures;
}

function batchRequest(request: DrawRequest, first: number, size: number): Parameters<Painter['prepare']>[0] {
  const { prompt, negativePrompt, width, height, numInferenceSteps, guidanceScale, promptWeighting } = request;
  return {
    prompt,
    negativePrompt,
    width,
    height,
    numInferenceSteps,
    guidanceScale,
    promptWeighting,
    seeds: Array.from({ length: size }, (_, i) => seedOf(request.seed, first + i)),
    ...(request.scheduler && { scheduler: request.scheduler as SchedulerName }),
  };
}
