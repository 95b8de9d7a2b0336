import { sizeDrawnFrom } from '@app/diffusion/sizes';
import { type DrawingTask, picturesIn, type PlaceInPicture } from '@app/domain';
import {
  maskAround,
  PictureReader,
  type Pixels,
  placeIn,
  type Reading,
  type ReadMask,
  type ReadPicture,
  type Size,
} from '@app/pictures';
import { Tasks } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import type { GivenPicture } from '../pictures/picture-claims';

/** The pictures that a task is drawn from, at the size at which it is drawn. */
export interface ReadPictures {
  image?: ReadPicture;
  mask?: ReadMask;
  /** What is around `image`, where that stands in a larger picture, and its place there. */
  around?: PlaceInPicture & { mask: Pixels };
  /** The picture of each of its ControlNets. */
  control: readonly ReadPicture[];
  /** The pictures that the model looks at, each in its own shape. */
  references: readonly ReadPicture[];
}

/** The files that a drawing is made from, as its credentials name them. */
export function givenPictures({ image, mask, control, references }: ReadPictures): GivenPicture[] {
  const named = [
    ...(image ? [['image', image] as const] : []),
    ...(mask ? [['mask', mask] as const] : []),
    ...control.map((each, i) => [`control[${i}]`, each] as const),
    ...references.map((each, i) => [`references[${i}]`, each] as const),
  ];
  return named.map(([field, { sha256, credentials }]) => ({ field, sha256, ...(credentials && { credentials }) }));
}

/** Whether a task waits for pictures before it can be drawn. */
export const hasPictures = ({ inputs }: Pick<DrawingTask, 'inputs'>): boolean => picturesIn(inputs).length > 0;

/** Reads the pictures that a task is drawn from. */
@Injectable()
export class SourcePictures {
  constructor(
    @Inject(PictureReader)
    private readonly reader: Pick<PictureReader, 'read' | 'readMask' | 'readOutpainted' | 'readReference'>,
    @Inject(Tasks) private readonly tasks: Pick<Tasks, 'recordShape'>,
  ) {}

  /**
   * One after the other, as an owner has a bounded part of what reads them. Where nothing else decides the shape of the
   * task, that of its picture does.
   * @throws PictureError, and what else `PictureReader` throws
   */
  async read(task: DrawingTask, signal: AbortSignal): Promise<ReadPictures> {
    const { image: url, mask, maskOf, outpaint, control = [], references = [] } = task.inputs ?? {};
    const shapedBy = shapedByOf(task);
    const reading = (field: string) => ({ owner: task.ownerId, account: task.accountId, field, signal });
    const image = url === undefined ? undefined : await this.readImage(url, task, reading('image'));
    const looked: ReadPicture[] = [];
    for (const [index, reference] of references.entries())
      looked.push(await this.reader.readReference(reference, reading(`references[${index}]`)));
    const shape = shapedBy && (image?.image ?? (looked.length > 0 ? sizeDrawnFrom(shapedBy, looked[0]) : undefined));
    if (shape) await this.takeShape(task, shape);
    const size = sizeOf(task);
    const maps: ReadPicture[] = [];
    for (const [index, { image: map, preprocess }] of control.entries()) {
      const field = `control[${index}].image`;
      maps.push(await this.reader.read(map, { ...reading(field), size, ...(preprocess && { preprocess }) }));
    }
    return {
      ...(image && { image }),
      ...(image &&
        mask !== undefined && {
          mask: await this.reader.readMask(mask, {
            ...reading('mask'),
            ...{ size, onto: { width: image.width, height: image.height } },
            ...(maskOf && { of: maskOf }),
          }),
        }),
      ...(image && outpaint && { around: aroundOf(size, image, outpaint) }),
      control: maps,
      references: looked,
    };
  }

  private readImage(url: string, task: DrawingTask, reading: Reading): Promise<ReadPicture> {
    const place = task.inputs?.outpaint;
    if (place) return this.reader.readOutpainted(url, { ...reading, size: sizeOf(task), place });
    return this.reader.read(url, { ...reading, size: shapedByOf(task) ?? sizeOf(task) });
  }

  private async takeShape(task: DrawingTask, { width, height }: Size): Promise<void> {
    // An older version that takes a request writes a word there until the shape is known.
    const shape = { width, height, aspectRatio: null };
    Object.assign(task, shape);
    await this.tasks.recordShape(task, shape);
  }
}

function aroundOf(size: Size, picture: Size, outpaint: true | PlaceInPicture): ReadPictures['around'] {
  const place = placeIn(size, picture, outpaint);
  return { ...place, mask: maskAround(size, picture, place) };
}

const sizeOf = ({ width, height }: DrawingTask) => ({ width, height });

/** What every model draws multiples of. */
const olderMultiple = 64;

/** What decides the size, if the request names none. Tasks of an older version say it in other words. */
function shapedByOf({ inputs }: DrawingTask) {
  const { shapedBy, sizes } = inputs ?? {};
  return shapedBy ?? (sizes && { edge: sizes.square.width, multiple: olderMultiple });
}
