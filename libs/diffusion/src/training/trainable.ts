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
  const { family, denoiser, conditioner, cannot } = model;
  if (denoiser instanceof UnetFiles && conditioner instanceof ClipConditionerFiles)
    return { ...model, denoiser, conditioner };
  throw new RequestError(cannot.training ?? `Models of ${family.title} cannot be trained.`);
}

/** @throws RequestError for a model that reads no pictures, or learns in another way */
export function assertTrainable({ cannot }: ModelFolder): void {
  if (cannot.training !== undefined) throw new RequestError(cannot.training);
}
