import { setMaxListeners } from 'node:events';
import type { TrainingPicture } from '@app/diffusion';
import { type Finetune, limits, picturesToLearn, type TrainingTask, usualCaption } from '@app/domain';
import { assertLearnable, PictureError, PictureReader, type ReadPicture } from '@app/pictures';
import { Inject, Injectable } from '@nestjs/common';
import type { TrainingPlan } from './training-protocol';
import type { TrainingProgress } from './training-progress';

/** As many as are fetched of an owner at a time. */
const atOnce = 4;

interface Planned {
  task: TrainingTask;
  finetune: Finetune;
  plan: Pick<TrainingPlan, 'size'>;
  progress: Pick<TrainingProgress, 'spend'>;
  signal: AbortSignal;
}

/** Reads the pictures of trainings. */
@Injectable()
export class TrainingPictures {
  constructor(@Inject(PictureReader) private readonly reader: Pick<PictureReader, 'read'>) {}

  /**
   * The pictures, upright and cropped around their middle to the size of the training. Each is read once, however often
   * it is named. All are read within a time limit, and their owner is charged for that time, even if it was in vain.
   * @throws PictureError, and what else `PictureReader` throws
   */
  async read({ task, finetune, plan, progress, signal }: Planned, limitMs: number = limits.trainingImages.ms) {
    const named = picturesToLearn(task.imagesUrl);
    const fields = new Map<string, string>();
    for (const { url, field } of named) if (!fields.has(url)) fields.set(url, field);
    const read = new Map<string, ReadPicture>();
    const size = { width: plan.size, height: plan.size };
    const failed = new AbortController();
    const late = AbortSignal.timeout(limitMs);
    const over = AbortSignal.any([signal, late, failed.signal]);
    setMaxListeners(0, over);
    const left = fields.entries();
    let since = performance.now();
    const spend = (): void => {
      const now = performance.now();
      progress.spend((now - since) / 1000);
      since = now;
    };
    const readSome = async (): Promise<void> => {
      for (const [url, field] of left) {
        read.set(
          url,
          await this.reader.read(url, { owner: task.ownerId, account: task.accountId, field, size, signal: over }),
        );
        spend();
      }
    };
    try {
      await Promise.all(Array.from({ length: atOnce }, readSome));
    } catch (error) {
      failed.abort(error);
      spend();
      signal.throwIfAborted();
      if (late.aborted)
        throw new PictureError(
          'images_url',
          `takes, with the others, longer than ${limitMs / 60_000} minutes to be read`,
        );
      throw error;
    }
    assertLearnable([...fields].map(([url, field]) => ({ field, picture: read.get(url)! })));
    const usual = usualCaption(finetune);
    return named.map(({ url }, index): TrainingPicture => ({
      image: read.get(url)!.image,
      caption: task.captions?.[index] ?? usual,
    }));
  }
}
