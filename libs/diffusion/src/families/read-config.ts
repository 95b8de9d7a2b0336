import { join } from 'node:path';
import { type ConfigJson, UnsupportedConfigError } from '../architectures/config';
import type { AutoencoderFiles } from '../autoencoders/autoencoder';
import { cures, ModelFolderError } from '../errors';
import type { PartName } from '../weights/original-names';
import type { ReadFiles } from './family';

/** A configuration in the architecture's words, if the part has one. */
export function configOf<T>(
  { path, configs }: ReadFiles,
  part: PartName,
  read: (json: ConfigJson) => T,
): T | undefined {
  const json = configs.get(part);
  if (!json) return undefined;
  try {
    return read(json);
  } catch (error) {
    if (!(error instanceof UnsupportedConfigError)) throw error;
    const file = join(path, part, 'config.json');
    throw new ModelFolderError(file, `describes another model: ${error.message.replace(/\.$/, '')}`, cures.otherModel);
  }
}

/** How the latents are scaled; diffusers leaves null what does not apply. @throws ModelFolderError */
export function scalingOf(
  { path, configs }: ReadFiles,
  usual: AutoencoderFiles['scaling'],
): AutoencoderFiles['scaling'] {
  const file = join(path, 'vae', 'config.json');
  const { scaling_factor: factor = null, shift_factor: shift = null } = configs.get('vae') ?? {};
  if (factor !== null && (!Number.isFinite(factor) || factor === 0))
    throw new ModelFolderError(file, 'has a scaling_factor that is no number, infinite or 0', cures.correct);
  if (shift !== null && !Number.isFinite(shift))
    throw new ModelFolderError(file, 'has a shift_factor that is no number or infinite', cures.correct);
  return { factor: Number(factor ?? usual.factor), shift: Number(shift ?? usual.shift) };
}
