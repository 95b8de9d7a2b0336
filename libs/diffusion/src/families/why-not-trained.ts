import { precisionOf } from '../weights/precision';
import type { Family, ModelParts } from './family';
import type { ModelDefaults } from './model-defaults';

export const untrained = ({ title }: Family): string => `Models of ${title} cannot be trained.`;

/** Why a model cannot be trained, as a sentence; undefined if it can, or another one is trained in its place. */
export function whyNotTrained(
  family: Family,
  { denoiser, autoencoder }: Pick<ModelParts, 'denoiser' | 'autoencoder'>,
  { train_on: other }: ModelDefaults,
): string | undefined {
  if (other !== undefined) return undefined;
  if (!denoiser.training) return untrained(family);
  if (precisionOf(denoiser.tensors) === 'int8')
    return 'The weights of this model are in int8, which cannot be trained. Install it in float32 or bfloat16, or one like it, and name that as "train_on" in the darkroom.json of this model.';
  if (denoiser.kind !== 'text-to-image')
    return 'Only a model that draws from text alone can be trained; this one takes a picture too.';
  if (denoiser.guidance === 'input')
    return 'This model was distilled to need few steps; train the model that it was made of.';
  return autoencoder.hasEncoder ? undefined : 'This model has no encoder, so it cannot learn from pictures.';
}
