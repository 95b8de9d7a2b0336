import { RequestError } from '../errors';
import type { Ability } from '../families/family';
import type { ModelFolder } from '../families/model-folder';
import type { PipelineFacts } from './loaded-parts';
import { isOfFlow } from '../schedulers/scheduler-config';
import { skippedSteps } from './starting-picture';
import type { ControlUse, TextToImageRequest } from './text-to-image-request';

const mostControls = 3;
const mostReferences = 4;

/** @throws RequestError naming the value and what is accepted */
export function checkRequest(
  request: TextToImageRequest,
  { scaleFactor }: Pick<PipelineFacts, 'scaleFactor'>,
  folder: ModelFolder,
): void {
  const { width, height, numInferenceSteps, guidanceScale, seeds, references = [], control = [] } = request;
  const multiple = scaleFactor * (folder.denoiser.patch ?? 1);
  const isMultiple = (size: number): boolean => Number.isInteger(size) && size > 0 && size % multiple === 0;
  for (const [name, size] of Object.entries({ width, height }))
    if (!isMultiple(size))
      throw new RequestError(`The ${name} is ${size}; this model draws multiples of ${multiple} pixels.`);
  if (!Number.isInteger(numInferenceSteps) || numInferenceSteps < 1)
    throw new RequestError(`The number of steps is ${numInferenceSteps}; at least 1 is needed.`);
  if (!Number.isFinite(guidanceScale))
    throw new RequestError(`The guidance scale is ${guidanceScale}; a number is needed.`);
  if (seeds.length === 0) throw new RequestError('There are no seeds; one is needed for each image.');
  checkAbilities(request, folder);
  checkPicture(request, folder);
  if (references.length > mostReferences)
    throw new RequestError(`There are ${references.length} references; at most ${mostReferences} can be looked at.`);
  for (const each of references)
    if (![each.width, each.height].every(isMultiple) || each.data.length !== each.width * each.height * 3)
      throw new RequestError(
        `A reference is of ${each.width} x ${each.height} pixels; this model looks at multiples of ${multiple}.`,
      );
  if (control.length > mostControls)
    throw new RequestError(`There are ${control.length} ControlNets; at most ${mostControls} can be used at once.`);
  for (const use of control) checkControl(use, request, scaleFactor, folder);
}

function checkAbilities(request: TextToImageRequest, { cannot }: ModelFolder): void {
  const wanted: Partial<Record<Ability, boolean>> = {
    negative_prompt: Boolean(request.negativePrompt),
    prompt_weighting: request.promptWeighting === true,
    control: (request.control ?? []).length > 0,
    references: (request.references ?? []).length > 0,
    textual_inversion: (request.adapters ?? []).some(({ adapter }) => adapter.words.length > 0),
  };
  for (const [ability, sentence] of Object.entries(cannot) as [Ability, string][])
    if (wanted[ability]) throw new RequestError(sentence);
}

function checkPicture(request: TextToImageRequest, { kind, schedulerJson }: ModelFolder): void {
  const { image, mask, strength = 1, imageGuidanceScale = 1, numInferenceSteps: steps } = request;
  if (kind === 'inpainting' && !(image && mask))
    throw new RequestError(
      `This model is for inpainting: it needs a picture and a mask, and draws nothing from ${image ? 'a picture' : 'text'} alone.`,
    );
  if (kind === 'instruct-pix2pix' && !image)
    throw new RequestError('This model changes pictures: it needs one, and draws nothing from text alone.');
  if (kind === 'instruct-pix2pix' && mask)
    throw new RequestError('This model changes whole pictures, and takes no mask.');
  if (mask && (request.references ?? []).length > 0)
    throw new RequestError('References are looked at where all of a picture is drawn, and there is a mask.');
  if (mask && !image) throw new RequestError('There is a mask, and no picture that it is for.');
  if (image) checkSize('picture', image, image.data.length / 3, request);
  if (mask) checkSize('mask', mask, mask.values.length, request);
  if (!(strength > 0 && strength <= 1))
    throw new RequestError(`The strength is ${strength}; it is above 0 and at most 1.`);
  if (kind !== 'instruct-pix2pix' && skippedSteps(request, isOfFlow(schedulerJson)) === steps)
    throw new RequestError(
      `A strength of ${strength} draws none of ${steps} steps; it takes at least ${Math.ceil(100 / steps) / 100}.`,
    );
  if (!Number.isFinite(imageGuidanceScale))
    throw new RequestError(`The image guidance scale is ${imageGuidanceScale}; a number is needed.`);
}

function checkControl(
  { controlNet, image, scale, start, end }: ControlUse,
  request: TextToImageRequest,
  scaleFactor: number,
  folder: ModelFolder,
): void {
  const problem = controlNet.problemFor(folder);
  if (problem !== undefined) throw new RequestError(problem);
  if (controlNet.scaleFactor !== scaleFactor)
    throw new RequestError(
      `This ControlNet takes maps of ${controlNet.scaleFactor} pixels for each of the latents, and the model draws ${scaleFactor}.`,
    );
  checkSize('map of a ControlNet', image, image.data.length / 3, request);
  if (!Number.isFinite(scale)) throw new RequestError(`The scale of a ControlNet is ${scale}; a number is needed.`);
  if (!(start >= 0 && start < end && end <= 1))
    throw new RequestError(`A ControlNet is used from ${start} to ${end}; both are from 0 to 1, the first is less.`);
}

/** A picture is scaled by whoever takes it in. */
function checkSize(
  name: string,
  size: { width: number; height: number },
  pixels: number,
  { width, height }: TextToImageRequest,
): void {
  if (size.width !== width || size.height !== height || pixels !== width * height)
    throw new RequestError(`The ${name} is of ${size.width} x ${size.height} pixels, and not of ${width} x ${height}.`);
}
