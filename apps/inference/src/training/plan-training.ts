import {
  foreseenBytes,
  readModelFolder,
  RequestError,
  type TrainingForm,
  trainingSettings,
  type TrainingSettings,
} from '@app/diffusion';
import type { TrainingCommand, TrainingPlan } from './training-protocol';

/** A smaller size is not worth training at. */
const smallSize = 256;
const forms: readonly TrainingForm[] = ['plain', 'recomputed'];
const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(1);

/**
 * The cheapest way to train a model that fits into memory: everything is kept of a step, or some of it is computed again,
 * or pictures are small.
 * @throws RequestError with the numbers if nothing fits; ModelFolderError
 */
export async function planTraining({
  folder,
  pictures,
  settings,
  memoryBytes,
}: Extract<TrainingCommand, { type: 'plan' }>): Promise<
  TrainingPlan & Pick<TrainingSettings, 'form'> & { maySample: boolean }
> {
  const model = await readModelFolder(folder);
  const { size: wanted } = trainingSettings(model, pictures, settings);
  let least = Infinity;
  for (const size of wanted > smallSize ? [wanted, smallSize] : [wanted])
    for (const form of forms) {
      const { weights, step } = await foreseenBytes(folder, { ...settings, size, form });
      const bytes = weights + step;
      least = Math.min(least, bytes);
      if (bytes > memoryBytes) continue;
      const note =
        size < wanted
          ? `It was trained with pictures of ${size} x ${size} pixels instead of ${wanted} x ${wanted}, which take more memory than there is.`
          : null;
      // A sample is drawn by the model once more.
      return { size, form, bytes, note, maySample: bytes + weights + step <= memoryBytes };
    }
  throw new RequestError(
    `To train this model takes ${gib(least)} GiB of memory at the least, and this service may use ${gib(memoryBytes)} GiB.`,
  );
}
