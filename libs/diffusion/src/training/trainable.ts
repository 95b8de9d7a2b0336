import { ClipConditionerFiles } from '../conditioners/clip-conditioner';
import type { ConditionerFiles } from '../conditioners/conditioner';
import type { DenoiserFiles } from '../denoisers/denoiser';
import { RequestError } from '../errors';
import { type ModelFolder, readModelFolder } from '../families/model-folder';
import { untrained } from '../families/why-not-trained';
import { takesTokens, type TrainingSettings } from './settings';

/** A model of which a training graph can be made. */
export interface TrainableModel extends ModelFolder {
  denoiser: DenoiserFiles & Required<Pick<DenoiserFiles, 'training'>>;
}

/**
 * @param folder of a model, or what was read of it
 * @throws ModelFolderError; RequestError for one of a family that cannot be trained
 */
export async function readTrainable(folder: string | ModelFolder): Promise<TrainableModel> {
  const model = typeof folder === 'string' ? await readModelFolder(folder) : folder;
  if (model.denoiser.training) return model as TrainableModel;
  throw new RequestError(model.cannot.training ?? untrained(model.family));
}

/** @throws RequestError for a model that reads no pictures, or learns in another way */
export function assertTrainable(
  { cannot, conditioner }: Pick<ModelFolder, 'cannot' | 'conditioner'>,
  settings: Pick<TrainingSettings, 'kind' | 'textEncoders'>,
): void {
  if (cannot.training !== undefined) throw new RequestError(cannot.training);
  if (takesTokens(settings)) trainedEncodersOf(conditioner);
}

/** The text encoders where they are a part of what is trained. @throws RequestError if they are none of CLIP */
export function trainedEncodersOf(conditioner: ConditionerFiles): ClipConditionerFiles {
  if (conditioner instanceof ClipConditionerFiles) return conditioner;
  throw new RequestError('The text encoder of this model is not trained: only a LoRA of its transformer is.');
}
