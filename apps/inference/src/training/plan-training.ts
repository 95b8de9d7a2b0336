import {
  assertTrainable,
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

type PlanCommand = Extract<TrainingCommand, { type: 'plan' }>;

/** A smaller size is not worth training at. */
const smallSize = 256;
const forms: readonly TrainingForm[] = ['plain', 'recomputed'];
const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(1);

/** The way in which a model is trained, with the model and the graph that were read and built to find out. */
export interface PlannedTraining extends TrainingPlan, Pick<TrainingSettings, 'form'> {
  model: ModelFolder;
  planned: TrainingGraph;
  /** Whether there is room to draw samples, which takes the model once more. */
  maySample: boolean;
}

/** The model that is trained, with what the one that draws says of training. @throws RequestError if they do not fit */
async function readTrained(folder: string, drawn: PlanCommand['drawn']): Promise<ModelFolder> {
  const model = await readModelFolder(folder);
  if (!drawn) return model;
  const { denoiser } = await readModelFolder(drawn.folder);
  const shapeOf = (name: string, tensors = denoiser.tensors): string => String(tensors.get(name)?.shape);
  const wrong = [...model.denoiser.tensors.keys()].find(
    (name) => shapeOf(name) !== shapeOf(name, model.denoiser.tensors),
  );
  if (wrong !== undefined)
    throw new RequestError(
      `The model that "train_on" of its darkroom.json names has other shapes, such as that of ${wrong}: name one that it was made of.`,
    );
  const training = { ...model.defaults.training, ...drawn.training };
  return { ...model, defaults: { ...model.defaults, training } };
}

const noteOf = (size: number, wanted: number): string | null =>
  size < wanted
    ? `It was trained with pictures of ${size} x ${size} pixels instead of ${wanted} x ${wanted}, which take more memory than there is.`
    : null;

/**
 * The quickest way to train that fits into memory beside a drawing model: everything of a step is kept, or some of it
 * is computed again, or pictures are small. If none fits, the smallest one that fits alone. A training that goes on
 * keeps its size.
 * @throws RequestError with the numbers if nothing fits; ModelFolderError
 */
export async function planTraining({
  folder,
  pictures,
  settings,
  memoryBytes,
  drawn,
  drawingBytes = 0,
  checkpoint,
  hasSamples,
}: Omit<PlanCommand, 'type' | 'model'> & { folder: string }): Promise<PlannedTraining> {
  const model = await readTrained(folder, drawn);
  const { size: wanted, ...whole } = trainingSettings(model, pictures, settings);
  assertTrainable(model, whole);
  const begun = checkpoint && settingsOfCheckpoint(checkpoint);
  const sizes = begun ? [begun.size] : wanted > smallSize ? [wanted, smallSize] : [wanted];
  let smallest: PlannedTraining | undefined;
  for (const size of sizes)
    for (const form of forms.slice(begun ? forms.indexOf(begun.form) : 0)) {
      const { weights, step, planned } = await foreseenBytes(model, { ...(begun ?? settings), size, form }, pictures);
      const trained = weights + step;
      const room = memoryBytes - drawingBytes;
      // The model stays loaded for samples. They must not take the room of one that draws for callers.
      const maySample = hasSamples && 3 * trained <= room;
      const bytes = maySample ? 2 * trained : trained;
      const found = { model, planned, size, form, bytes, note: noteOf(size, wanted), maySample };
      if (trained <= room) return found;
      if (!smallest || bytes < smallest.bytes) smallest = found;
    }
  if (smallest && smallest.bytes <= memoryBytes) return smallest;
  const least = gib(smallest?.bytes ?? Infinity);
  throw new RequestError(
    `To train this model takes ${least} GiB of memory at the least, and this service may use ${gib(memoryBytes)} GiB.`,
  );
}
