import { Drawing, type DrawingTask, Image, type Task } from '@app/domain';
import type { EntityManager, FindOptionsWhere } from 'typeorm';
import type { DrawnPicture, Settlement } from './settlement';
import { keepStyleThumbnail } from './style-thumbnails';
import type { StoredChangeOf } from './storage-use';
import { recordUsage, finetunesOf, withFiltered } from './usage';

/**
 * Compute seconds of one step of a picture of 512 x 512 on a typical GPU. The real cost replaces the estimate in the
 * end.
 */
const secondsPerStep = 0.05;
/** Cost of the text encoder and the decoder, and of enlarging to high resolution, in steps. */
const fixedSteps = 4;
const enlargingSteps = 60;
/**
 * Cost of each chunk of the prompt after the first, as fractions of a step: per step, and of its encoding. Measured
 * with the bundled model.
 */
const stepShareOfChunk = 0.05;
const stepsPerChunk = 0.03;

/** Cost of a ControlNet per step, as a fraction of one: it has a U-Net's way down, the smaller half of the work. */
const stepShareOfControl = 0.4;

/** Cost of a picture that is looked at, per step: of up to a megapixel, whatever the size of what is drawn. */
const areaOfReference = 1024 ** 2 / 512 ** 2;

type Costly = Pick<Drawing, 'numImages' | 'width' | 'height' | 'steps' | 'highResolution' | 'promptChunks' | 'inputs'>;

/** Estimated compute seconds of a drawing. */
export function costOf({ numImages, width, height, steps, highResolution, promptChunks, inputs }: Costly): number {
  const moreChunks = (promptChunks ?? 1) - 1;
  const { strength = 1, control = [], references = [] } = inputs ?? {};
  const step = 1 + stepShareOfChunk * moreChunks + stepShareOfControl * control.length;
  const picture = steps * strength * step + fixedSteps + (highResolution ? enlargingSteps : 0);
  const area = (width * height) / 512 ** 2;
  const looking = steps * strength * areaOfReference * references.length;
  return secondsPerStep * (stepsPerChunk * moreChunks + numImages * (area * picture + looking));
}

/** A task with what it draws; undefined if there is none. */
export async function findDrawing(
  manager: EntityManager,
  where: FindOptionsWhere<Task>,
): Promise<DrawingTask | undefined> {
  const query = manager.createQueryBuilder(Drawing, 'drawing');
  const drawing = await query.setFindOptions({ where: { task: where }, relations: { task: true } }).getOne();
  if (!drawing) return undefined;
  const { task, ...fields } = drawing;
  return Object.assign(task, fields);
}

/**
 * Writes what came of a drawing that has succeeded, in the transaction that settles its task.
 * @returns how much more Styles take
 */
export async function writePictures(
  manager: EntityManager,
  task: Task,
  settlement: Settlement,
): Promise<StoredChangeOf[]> {
  const { images = [], computeSeconds = 0, served, upscaler = null, filtered = 0 } = settlement;
  const looked = { filtered, flagged: [...(settlement.flagged ?? [])], flaggedBy: [...(settlement.flaggedBy ?? [])] };
  await manager.update(Drawing, { id: task.id }, { ...served, upscaler, ...looked });
  if (images.length > 0)
    await manager.insert(
      Image,
      images.map((image) => ({ ...image, taskId: task.id })),
    );
  const thumbnail = styleThumbnailOf(settlement);
  const ofStyles = thumbnail ? await keepStyleThumbnail(manager, task.id, thumbnail) : [];
  if (task.sandbox) return ofStyles;
  const drawing = await manager.findOneByOrFail(Drawing, { id: task.id });
  const pixels = images.reduce((sum, { width, height }) => sum + width * height, 0);
  const drawn = { images: images.length, steps: images.length * drawing.steps, pixels, computeSeconds };
  await recordUsage(manager, { ...task, ...finetunesOf(drawing) }, withFiltered(drawn, drawing, filtered));
  return ofStyles;
}

/** Of the first picture of a Prompt. */
export const styleThumbnailOf = ({ images = [] }: Settlement): DrawnPicture['styleThumbnail'] =>
  images.at(0)?.styleThumbnail;
