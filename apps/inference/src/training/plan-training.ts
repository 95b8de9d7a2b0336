import {
  foreseenBytes,
  type ModelFolder,
  readModelFolder,
  RequestError,
  settingsOfCheckpoint,
  type TrainingForm,
  type TrainingGraph,
  trainingSettings,
  type TrainingSettings,
} from '@app/diffusion';
import type { TrainingCommand, TrainingPlan } from './training-protocol';

/** A smaller size is not worth training at. */
const smallSize = 256;
const forms: readonly TrainingForm[] = ['plain', 'recomputed'];
const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(1);

/** How a model is trained, with what was read and built to find out. */
export interface PlannedTraining extends TrainingPlan, Pick<TrainingSettings, 'form'> {
  model: ModelFolder;
  planned: TrainingGraph;
  /** Whether there is room to draw samples, which takes the model once more. */
  maySample: boolean;
}

/**
 * The cheapest way to train a model that fits into memory: everything is kept of a step, or some of it is computed again,
 * or pictures are small. A training that goes on keeps its size.
 * @throws RequestError with the numbers if nothing fits; ModelFolderError
 */
export async function planTraining({
  folder,
  pictures,
  settings,
  memoryBytes,
  checkpoint,
}: Omit<Extract<TrainingCommand, { type: 'plan' }>, 'type'>): Promise<PlannedTraining> {
  const model = await readModelFolder(folder);
  const { size: wanted } = trainingSettings(model, pictures, settings);
  const begun = checkpoint && settingsOfCheckpoint(checkpoint);
  const sizes = begun ? [begun.size] : wanted > smallSize ? [wanted, smallSize] : [wanted];
  let least = Infinity;
  for (const size of sizes)
    for (const form of forms.slice(begun ? forms.indexOf(begun.form) : 0)) {
      const { weights, step, planned } = await foreseenBytes(model, { ...(begun ?? settings), size, form });
      const trained = weights + step;
      least = Math.min(least, trained);
      if (trained > memoryBytes) continue;
      const note =
        size < wanted
          ? `It was trained with pictures of ${size} x ${size} pixels instead of ${wanted} x ${wanted}, which take more memory than there is.`
          : null;
      // The model stays loaded for samples. They must not take the room of one that draws for callers.
      const maySample = 3 * trained <= memoryBytes;
      return { model, planned, size, form, bytes: maySample ? 2 * trained : trained, note, maySample };
    }
  throw new RequestError(
    `To train this model takes ${gib(least)} GiB of memory at the least, and this service may use ${gib(memoryBytes)} GiB.`,
  );
}
