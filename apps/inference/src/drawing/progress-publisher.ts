import type { Attempt, DrawingTask } from '@app/domain';
import { progressChannel, type StepMessage } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import sharp from 'sharp';
import { DataSource } from 'typeorm';
import type { DrawingProgress, RgbImage } from '../engine/engine-protocol';
import { type DigitalSourceType, sourceTypeOf, xmpOf } from '../pictures/source-type';

const intervalMs = 100;
/** PostgreSQL rejects a notification of 8000 bytes. */
const maxPreviewLength = 7_500;
/** Longer edges of previews, in pixels. */
const previewEdges = [256, 128, 64];

interface TrainingStep {
  /** Counts how often it was begun again. */
  round: number;
  step: number;
  steps: number;
  loss: number;
  preview?: RgbImage;
}

/** Publishes the progress of drawings and trainings. Nothing depends on it: messages may be lost. */
@Injectable()
export class ProgressPublisher {
  constructor(
    private readonly dataSource: DataSource,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * Takes the engine's steps of one task and publishes some of them: the last, and one in every 100 ms. They are
   * counted in the steps that were asked for: a scheduler may call the denoiser more often than that.
   * @param showsPreviews not where flagged pictures are blocked: nobody has looked at what is half drawn
   */
  of(
    { id, attempt, steps, inputs }: Pick<DrawingTask, 'id' | 'attempt' | 'steps' | 'inputs'>,
    showsPreviews = true,
  ): (progress: DrawingProgress) => void {
    const type = sourceTypeOf(inputs ?? {});
    let publishedAt = -Infinity;
    let published = 0;
    let preview: RgbImage | undefined;
    return ({ step, total, preview: newest }) => {
      if (showsPreviews) preview = newest ?? preview;
      const now = performance.now();
      const done = Math.floor((step * steps) / total);
      if (done <= published || (done < steps && now - publishedAt < intervalMs)) return;
      publishedAt = now;
      published = done;
      void this.publish({ id, attempt, step: done, total: steps } satisfies StepMessage, type, preview);
      preview = undefined;
    };
  }

  /** The same for the steps of a training; the first, too, because its steps may be long. */
  ofTraining({ id, attempt }: Attempt): (step: TrainingStep) => void {
    let publishedAt = -Infinity;
    return ({ round, step, steps: total, loss, preview }) => {
      const now = performance.now();
      if (step < total && !preview && now - publishedAt < intervalMs) return;
      publishedAt = now;
      // A client gets only what comes after what it has.
      void this.publish({ id, attempt, step, total, loss, order: round * total + step }, sourceTypeOf({}), preview);
    };
  }

  private async publish(message: StepMessage, type: DigitalSourceType, preview?: RgbImage): Promise<void> {
    try {
      const jpeg = preview && (await encodePreview(preview, type));
      const payload = JSON.stringify({ ...message, ...(jpeg && { preview: jpeg }) });
      await this.dataSource.query('SELECT pg_notify($1, $2)', [progressChannel, payload]);
    } catch (error) {
      this.logger.debug('a step was not published', { reason: (error as Error).message });
    }
  }
}

/** A JPEG in base64 that fits into a notification: as large as it may be. */
async function encodePreview({ data, width, height }: RgbImage, type: DigitalSourceType): Promise<string | undefined> {
  for (const edge of previewEdges) {
    const image = sharp(data, { raw: { width, height, channels: 3 } });
    const small = image.resize({ width: edge, height: edge, fit: 'inside', withoutEnlargement: true });
    const text = (await small.withXmp(xmpOf(type)).jpeg({ quality: 80 }).toBuffer()).toString('base64');
    if (text.length <= maxPreviewLength) return text;
  }
  return undefined;
}
