import type { RgbImage, SchedulerName, StableDiffusionPipeline } from '@app/diffusion';
import { AbortError } from '@app/diffusion';
import { planBatches } from './batch-plan';
import type { DrawingProgress, DrawingStarted, DrawRequest } from './engine-protocol';
import { seedOf } from './seed';

/** The parts of a pipeline that drawing needs. */
export type Painter = Pick<StableDiffusionPipeline, 'facts' | 'prepare' | 'step' | 'decode' | 'preview'>;

/** Callbacks during a drawing, and the check whether it was aborted. */
export interface DrawingHooks {
  aborted(): boolean;
  started(started: DrawingStarted): void;
  progress(progress: DrawingProgress): void;
  /** Called for each picture, in order, as soon as it is decoded. */
  picture(index: number, picture: RgbImage): void;
}

/** A preview costs a pass over the latents, so there are at most a few per second. */
const previewIntervalMs = 400;

/**
 * Draws all pictures of a request, batch after batch.
 * @param maxBatchSize pictures at once
 * @throws AbortError at the first step after `hooks.aborted()` turned true
 * @throws RangeError if the model cannot draw the request
 */
export async function drawPictures(
  painter: Painter,
  request: DrawRequest,
  maxBatchSize: number,
  hooks: DrawingHooks,
): Promise<void> {
  const check = (): void => {
    if (hooks.aborted()) throw new AbortError();
  };
  const batches = planBatches(request.numImages, maxBatchSize);
  let drawn = 0;
  let previewedAt = performance.now();
  for (const [done, size] of batches.entries()) {
    check();
    const denoising = await painter.prepare(batchRequest(request, drawn, size));
    const { promptChunks, totalSteps } = denoising;
    if (done === 0) hooks.started({ promptChunks, scheduler: request.scheduler ?? painter.facts.scheduler });
    for (let more = true; more;) {
      check();
      const startedAt = performance.now();
      more = await painter.step(denoising);
      const now = performance.now();
      const isPreviewDue = more && now - previewedAt >= previewIntervalMs;
      if (isPreviewDue) previewedAt = now;
      hooks.progress({
        step: done * totalSteps + denoising.stepIndex,
        total: batches.length * totalSteps,
        batch: size,
        stepMs: now - startedAt,
        ...(isPreviewDue && { preview: painter.preview(denoising, 0) }),
      });
    }
    for (const image of denoising.images) {
      check();
      // One at a time, so that each can be encoded while the next is decoded.
      const [picture] = await painter.decode({ images: [image], shape: denoising.shape });
      hooks.picture(drawn++, picture);
    }
  }
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
