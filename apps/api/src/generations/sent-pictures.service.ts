import { drawnSteps } from '@app/diffusion/files';
import {
  defaults,
  type DrawingInputs,
  invalidAt,
  type InvalidError,
  type PlaceInPicture,
  picturesIn,
  pointerToField,
  problemAt,
  UnprocessableError,
} from '@app/domain';
import type { ControlUseDto } from '@app/domain/http';
import { type InstalledModel, PictureSizes } from '@app/model-store';
import { NoPictureError, PictureError, PictureReader, placeIn, referenceSize, type Size } from '@app/pictures';
import { Injectable } from '@nestjs/common';
import { askedShape, type SentShape, type Shape } from '../models/asked-shape';
import { assertDrawable } from '../models/assert-drawable';
import { ModelsService } from '../models/models.service';

/** The pictures of a body that are drawn from, and what not every model takes beside them. */
export interface SentPicturesBody extends SentShape {
  cfg?: number | null | undefined;
  negative_prompt?: string | null | undefined;
  prompt_weighting?: boolean | null | undefined;
  scheduler?: string | null | undefined;
  image?: string | null | undefined;
  strength?: number | null | undefined;
  mask?: string | null | undefined;
  maskOf?: 'transparent';
  outpaint?: boolean | PlaceInPicture | null | undefined;
  control?: readonly ControlUseDto[] | null | undefined;
  references?: readonly string[] | null | undefined;
  steps?: number | null | undefined;
}

interface Asked {
  accountId: string;
  pointer: string;
  /** In the request. */
  model: string;
  served: InstalledModel;
}

/** Of these the first that there is decides the shape, where nothing else does. */
const picturesOfShape = ['image', 'references[0]'];

/** Checks what can be known of a request's pictures before it is drawn. */
@Injectable()
export class SentPictures {
  constructor(
    private readonly reader: PictureReader,
    private readonly models: ModelsService,
  ) {}

  /**
   * The inputs of a drawing with every default resolved, and its shape: that of the body, or that of the picture, or of
   * the first one that is looked at; a picture from elsewhere has none until it is fetched.
   * @throws UnprocessableError for what the model cannot draw, for pictures and ControlNets that are not there, and for
   * a strength that draws no step; InvalidError for a ControlNet that ends before it starts, for references beside a
   * mask, and for a size that the model does not draw
   */
  async check(sent: SentPicturesBody, asked: Asked): Promise<{ inputs: DrawingInputs; shape: Shape | undefined }> {
    const { pointer, model, served } = asked;
    const { image, mask, strength, maskOf } = sent;
    const outpaint = sent.outpaint || undefined;
    const shape = askedShape(sent, asked);
    assertImage(sent, pointer);
    assertDrawable(served, { ...sent, pointer });
    const references = sent.references ?? [];
    if (references.length > 0 && (mask || outpaint))
      throw refusedTogether(`${pointer}/references`, mask ? 'mask' : 'outpaint');
    if (outpaint && mask) throw refusedTogether(`${pointer}/outpaint`, 'mask');
    if (outpaint && !shape) throw invalidAt(`${pointer}/outpaint`, 'needs "width" and "height", or "aspect_ratio"');
    const control = (sent.control ?? []).map(resolvedControl);
    for (const [index, use] of control.entries()) {
      const at = `${pointer}/control/${index}`;
      await this.models.assertControl(use.model, served, `${at}/model`);
      if (use.start >= use.end) throw refusedSpan(`${at}/end`, use.start);
    }
    const inputs: DrawingInputs = {
      ...(image && { image, strength: strength ?? (outpaint ? defaults.outpaintStrength : defaults.strength) }),
      ...(outpaint && { outpaint }),
      ...(mask && { mask, ...(maskOf && { maskOf }) }),
      ...(control.length > 0 && { control }),
      ...(references.length > 0 && { references }),
    };
    assertStrength(inputs, sent.steps ?? served.defaults.steps ?? defaults.steps, asked);
    const shapes = await this.shapesOf(inputs, asked);
    assertPlace(inputs, { shape, picture: shapes.get('image') }, pointer);
    const first = picturesOfShape.find((field) => picturesIn(inputs).some((picture) => picture.field === field));
    if (shape || !first) return { inputs, shape };
    const picture = shapes.get(first);
    const sizes = new PictureSizes(model, served);
    if (picture) return { inputs, shape: { aspectRatio: null, ...sizes.from(picture) } };
    const { edge, multiple } = sizes.rules;
    return {
      inputs: { ...inputs, shapedBy: { edge, multiple } },
      shape: { aspectRatio: null, ...sizes.ofRatio('square') },
    };
  }

  /** Sizes of the pictures that are stored here, by field. @throws UnprocessableError `PictureNotFound` */
  private async shapesOf(inputs: DrawingInputs, { accountId, pointer }: Asked): Promise<ReadonlyMap<string, Size>> {
    const shapes = new Map<string, Size>();
    for (const { url, field } of picturesIn(inputs)) {
      const shape = await this.reader.shapeOf(url, { account: accountId, field }).catch((error: unknown) => {
        if (!(error instanceof PictureError)) throw error;
        const at = pointer + pointerToField(field);
        throw new UnprocessableError('PictureNotFound', error.message, [{ pointer: at, message: error.reason }]);
      });
      if (shape) shapes.set(field, shape);
      if (shape && field.startsWith('references')) assertLookedAt(shape, field, pointer);
    }
    return shapes;
  }
}

function assertImage({ image, mask, strength, outpaint }: SentPicturesBody, pointer: string): void {
  if (image) return;
  const fields = Object.entries({ mask, strength, outpaint: outpaint || undefined }).flatMap(([field, value]) =>
    (value ?? undefined) === undefined ? [] : [{ pointer: `${pointer}/${field}`, message: 'needs an image' }],
  );
  if (fields.length === 0) return;
  throw new UnprocessableError('PictureMissing', `"${fields[0].pointer}" needs "${pointer}/image".`, fields);
}

/** An instruct-pix2pix model draws all of its steps, whatever the strength. */
function assertStrength({ strength = 1 }: DrawingInputs, steps: number, { pointer, served }: Asked): void {
  if (drawnSteps(steps, strength, served.isOfFlow === true) > 0 || served.kind === 'instruct-pix2pix') return;
  const message = `draws none of ${steps} steps; with ${steps} it takes at least ${Math.ceil(100 / steps) / 100}`;
  const at = `${pointer}/strength`;
  throw new UnprocessableError('StrengthTooLow', ...problemAt(at, message));
}

function resolvedControl({ image, model, scale, start, end, preprocess }: ControlUseDto) {
  const { control } = defaults;
  const span = { start: start ?? control.start, end: end ?? control.end };
  return { image, model, scale: scale ?? control.scale, ...span, preprocess: preprocess ?? null };
}

/** @throws UnprocessableError for a picture that is too small or too long to be looked at */
const assertLookedAt = (shape: Size, field: string, pointer: string): void =>
  assertPicture('PictureUnreadable', () => referenceSize(shape), field, pointer);

/** @throws UnprocessableError for a picture that has no place in the larger one that is drawn around it */
function assertPlace(
  { outpaint }: DrawingInputs,
  { shape, picture }: { shape: Shape | undefined; picture: Size | undefined },
  pointer: string,
): void {
  if (!outpaint || !shape || !picture) return;
  assertPicture('PictureDoesNotFit', () => placeIn(shape, picture, outpaint), 'image', pointer);
}

/** @param check throws NoPictureError for a picture that is not taken */
function assertPicture(
  code: 'PictureUnreadable' | 'PictureDoesNotFit',
  check: () => unknown,
  field: string,
  pointer: string,
): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof NoPictureError)) throw error;
    const { message, reason } = new PictureError(field, error.message);
    throw new UnprocessableError(code, message, [{ pointer: pointer + pointerToField(field), message: reason }]);
  }
}

const refusedTogether = (pointer: string, other: string): InvalidError =>
  invalidAt(pointer, `cannot be sent with "${other}"; leave one of them out`);

const refusedSpan = (pointer: string, start: number): InvalidError =>
  invalidAt(pointer, `must be more than "start", which is ${start}`);
