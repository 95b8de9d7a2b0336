import { basename, join } from 'node:path';
import { ClipConditionerFiles } from '../conditioners/clip-conditioner';
import { allOf, cures } from '../errors';
import { isOfFlow, type SchedulerJson } from '../schedulers/scheduler-config';
import type { Family, ModelParts, ModelWeights } from './family';
import { defaultsFile, type ModelDefaults } from './model-defaults';
import { vaeFile } from './model-parts';
import { problemsOfSchedulers } from './model-scheduler';

interface ReadModel
  extends Pick<ModelParts, 'denoiser' | 'conditioner' | 'autoencoder'>, Pick<ModelWeights, 'tensors' | 'files'> {
  path: string;
  family: Family;
  schedulerJson: SchedulerJson;
}

/**
 * Refuses what a model was given and cannot draw with, though it is right for another.
 * @throws ModelFolderError for an autoencoder or values of `darkroom.json` of another family or kind
 */
export function refuseUnfit(model: ReadModel, defaults: ModelDefaults): void {
  const file = join(model.path, defaultsFile);
  const faults = [
    ...unfitAutoencoder(model),
    ...unfitTextEncoder(model),
    ...unfitDefaults(model, defaults).map((reason) => ({ file, reason, cure: cures.correctOrRemove })),
  ];
  if (faults.length > 0) throw allOf(faults);
}

function unfitAutoencoder({ family, tensors, files, autoencoder: { latentChannels: found } }: ReadModel) {
  const needed = family.latentChannels?.(tensors);
  if (found === undefined || needed === undefined || found === needed) return [];
  const file = files.get('vae')!;
  const reason = `is no autoencoder of ${family.title}: its latents have ${found} channels, and ${needed} are needed`;
  return [{ file, reason, cure: basename(file) === vaeFile ? cures.ownVae : cures.oneModel }];
}

function unfitTextEncoder({ family, tensors, files }: ReadModel) {
  const needed = family.textWidth?.(tensors);
  const own = tensors.get('text_encoder');
  const found = (own?.get('model.embed_tokens.weight') ?? own?.get('embed_tokens.weight'))?.shape[1];
  if (found === undefined || needed === undefined || found === needed) return [];
  const reason = `is no text encoder of this ${family.title}: its states are ${found} wide, and ${needed} are needed`;
  return [{ file: files.get('text_encoder')!, reason, cure: cures.oneModel }];
}

function unfitDefaults(model: ReadModel, defaults: ModelDefaults): string[] {
  const { scheduler, cfg, clip_skip, prediction_type, training = {} } = defaults;
  const reasons: string[] = [];
  if (scheduler !== undefined) {
    const { named } = problemsOfSchedulers(model);
    const problem = named[scheduler]?.replace(/\.$/, '');
    if (problem !== undefined) reasons.push(`has the scheduler ${scheduler}, which cannot draw with it: ${problem}`);
  }
  if (cfg !== undefined && cfg !== 1 && model.denoiser.guidance === 'none')
    reasons.push(`has a cfg of ${cfg}, and the model was distilled to draw without guidance, which is a cfg of 1`);
  if (clip_skip !== undefined && !model.conditioner.takesClipSkip)
    reasons.push('has a clip_skip, and the text encoder of the model is no CLIP');
  if (prediction_type !== undefined && isOfFlow(model.schedulerJson))
    reasons.push('has a prediction_type, and a model of flow matching can predict one thing only');
  if (
    (training.kind === 'textual_inversion' || training.text_encoders) &&
    !(model.conditioner instanceof ClipConditionerFiles)
  )
    reasons.push('has a "training" of its text encoder, which is no CLIP; a LoRA of the transformer is trained');
  return reasons;
}
