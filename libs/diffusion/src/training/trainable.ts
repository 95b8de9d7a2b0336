import { ClipConditionerFiles } from '../conditioners/clip-conditioner';
import { UnetFiles } from '../denoisers/unet';
import { RequestError } from '../errors';
import { type ModelFolder, readModelFolder } from '../families/model-folder';

/** A model of which a training graph can be made: a U-Net behind CLIP. */
export interface TrainableModel extends ModelFolder {
  denoiser: UnetFiles;
  conditioner: ClipConditionerFiles;
}

/**
 * @param folder of a model, or what was read of it
 * @throws ModelFolderError; RequestError for one of another family
 */
export async function readTrainable(folder: string | ModelFolder): Promise<TrainableModel> {
  const model = typeof folder === 'string' ? await readModelFolder(folder) : folder;
  const { family, denoiser, conditioner } = model;
  if (denoiser instanceof UnetFiles && conditioner instanceof ClipConditionerFiles)
    return { ...model, denoiser, conditioner };
  throw new RequestError(family.cannot.training ?? `Models of ${family.title} cannot be trained.`);
}

/** @throws RequestError for a model that reads no pictures, or learns in another way */
export function assertTrainable({ kind, family, denoiser, autoencoder }: ModelFolder): void {
  if (family.cannot.training !== undefined) throw new RequestError(family.cannot.training);
  if (kind !== 'text-to-image')
    throw new RequestError('Only a model that draws from text alone can be trained; this one takes a picture too.');
  if (denoiser.guidance !== 'rows')
    throw new RequestError('This model was distilled to need few steps; train the model that it was made of.');
  if (!autoencoder.hasEncoder) throw new RequestError('This model has no encoder, so it cannot learn from pictures.');
}
