import { aspectRatios, type DrawingTask, picturesIn } from '@app/domain';
import { nearestSize, PictureReader, type ReadMask, type ReadPicture, type Size } from '@app/pictures';
import { Tasks } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';

/** The pictures that a task is drawn from, at the size at which it is drawn. */
export interface ReadPictures {
  image?: ReadPicture;
  mask?: ReadMask;
  /** The picture of each of its ControlNets. */
  control: readonly ReadPicture[];
  /** The pictures that the model looks at, each in its own shape. */
  references: readonly ReadPicture[];
}

/** Whether a task waits for pictures before it can be drawn. */
export const hasPictures = ({ inputs }: Pick<DrawingTask, 'inputs'>): boolean => picturesIn(inputs).length > 0;

/** Reads the pictures that a task is drawn from. */
@Injectable()
export class SourcePictures {
  constructor(
    @Inject(PictureReader) private readonly reader: Pick<PictureReader, 'read' | 'readMask' | 'readReference'>,
    @Inject(Tasks) private readonly tasks: Pick<Tasks, 'recordShape'>,
  ) {}

  /**
   * One after the other, as an owner has a bounded part of what reads them. Where nothing else decides the shape of the
   * task, that of its picture does.
   * @throws PictureError, and what else `PictureReader` throws
   */
  async read(task: DrawingTask, signal: AbortSignal): Promise<ReadPictures> {
    const { image: url, mask, maskOf, control = [], references = [], sizes } = task.inputs ?? {};
    const reading = (field: string) => ({ owner: task.ownerId, account: task.accountId, field, signal });
    const image =
      url === undefined
        ? undefined
        : await this.reader.read(url, { ...reading('image'), size: sizes ? Object.values(sizes) : sizeOf(task) });
    const looked: ReadPicture[] = [];
    for (const [index, reference] of references.entries())
      looked.push(await this.reader.readReference(reference, reading(`references[${index}]`)));
    const shape = image?.image ?? (sizes && looked[0] && nearestSize(Object.values(sizes), looked[0]));
    if (sizes && shape) await this.takeShape(task, sizes, shape);
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
      control: maps,
      references: looked,
    };
  }

  private async takeShape(
    task: DrawingTask,
    sizes: NonNullable<NonNullable<DrawingTask['inputs']>['sizes']>,
    { width, height }: Size,
  ): Promise<void> {
    const aspectRatio = aspectRatios.find((each) => sizes[each].width === width && sizes[each].height === height);
    const shape = { width, height, aspectRatio: aspectRatio ?? task.aspectRatio };
    Object.assign(task, shape);
    await this.tasks.recordShape(task, shape);
  }
}

const sizeOf = ({ width, height }: DrawingTask) => ({ width, height });
