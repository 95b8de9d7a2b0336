import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { controlNetModel } from '../architectures/control-net-model';
import { unetConfigOf } from '../architectures/unet-2d-condition-model';
import type { ControlFiles } from '../denoisers/control-net';
import { cures, ModelFolderError, UnsupportedConfigError } from '../errors';
import { misfit } from '../sessions/part-graph';
import { type NamedTensors, WeightsFileError } from '../weights/named-tensor';
import { partsOfCheckpoint, withDiffusersNames } from '../weights/original-names';
import { readPart, readSafetensors } from '../weights/safetensors-file';
import { readJsonFile } from '../weights/folder-files';
import { refusing } from './model-parts';
import type { StableDiffusion } from './stable-diffusion';
import { stableDiffusion1 } from './stable-diffusion-1';
import { stableDiffusion2 } from './stable-diffusion-2';
import { stableDiffusionXl } from './stable-diffusion-xl';

/** A ControlNet without its weights: what it is, and where they are. */
export interface ControlFolder extends ControlFiles {
  path: string;
  family: StableDiffusion;
}

/** Files that are not one ControlNet for Stable Diffusion, though they are called so. */
const others: readonly [name: RegExp, is: string][] = [
  [/^(task_embedding|transformer_layes\.|control_add_embedding)/, 'is a ControlNet Union, which is not supported'],
  [/^lora_controlnet$|\.(up|down)$/, 'is a Control-LoRA, which is not supported'],
  [/^lllite_/, 'is a ControlNet-LLLite, which is not supported'],
  [/^(transformer_blocks|double_blocks|single_blocks|joint_blocks)\./, 'is a ControlNet of another kind of model'],
];

/** Names of weights that only ControlNets have, plain ones and others. */
const ofControl = /^(control_model\.|controlnet_|zero_convs\.|input_hint_block\.|lora_controlnet$|lllite_)/;

/** Whether a folder's own `config.json` is that of a ControlNet, of whichever kind. */
export async function describesControlNet(path: string): Promise<boolean> {
  const json = await readJsonFile(join(path, 'config.json'), { optional: true });
  return typeof json?._class_name === 'string' && json._class_name.startsWith('ControlNet');
}

/**
 * The ControlNet of a folder; undefined if it is none.
 * @throws ModelFolderError for one that is damaged or of another kind
 */
export async function findControlFolder(path: string): Promise<ControlFolder | undefined> {
  if (await describesControlNet(path)) return readControlFolder(path);
  const names = await readdir(path);
  const files = names.filter((name) => name.endsWith('.safetensors'));
  if (files.length !== 1 || names.includes('unet')) return undefined;
  const all = await refusing(path, () => readSafetensors(join(path, files[0])));
  return [...all.keys()].some((name) => ofControl.test(name)) ? readControlFolder(path) : undefined;
}

/**
 * Reads a ControlNet: a folder of diffusers, or one with a single file in diffusers' or the original names. Only
 * headers of weights are read.
 * @throws ModelFolderError naming the file that is missing or wrong
 */
export async function readControlFolder(path: string): Promise<ControlFolder> {
  const json = await readJsonFile(join(path, 'config.json'), { optional: true });
  const name = json?._class_name;
  if (name !== undefined && name !== 'ControlNetModel')
    throw new ModelFolderError(join(path, 'config.json'), `describes a ${JSON.stringify(name)}`, cures.otherControl);
  const all = await refusing(path, async () => {
    const files = (await readdir(path)).filter((file) => file.endsWith('.safetensors'));
    const isPart = existsSync(join(path, 'diffusion_pytorch_model.safetensors.index.json')) || files.length !== 1;
    return isPart ? readPart(path) : readSafetensors(join(path, files[0]));
  });
  const file = all.values().next().value?.file ?? path;
  const other = others.find(([pattern]) => [...all.keys()].some((each) => pattern.test(each)));
  if (other) throw new ModelFolderError(file, other[1], cures.otherControl);
  const tensors = partsOfCheckpoint(all).get('controlnet') ?? withDiffusersNames('controlnet', all);
  if (!isControlNet(tensors)) throw new ModelFolderError(file, 'is no ControlNet', cures.otherControl);
  try {
    const family = familyOf(tensors);
    const usualConfig = family.unetConfig(new Map([['unet', tensors]]));
    const config = json && unetConfigOf(json);
    // Without one, what no shape tells is as in the model that it guides.
    if (config) controlNetModel({ tensors }, config);
    return { part: 'controlnet', path, family, tensors, file, config, usualConfig };
  } catch (error) {
    if (error instanceof WeightsFileError) throw misfit(file, error);
    if (!(error instanceof UnsupportedConfigError)) throw error;
    const reason = `describes another model: ${error.message.replace(/\.$/, '')}`;
    throw new ModelFolderError(join(path, 'config.json'), reason, cures.otherControl);
  }
}

/** Whether weights with diffusers' names are those of a ControlNet. */
export const isControlNet = (tensors: NamedTensors): boolean =>
  tensors.has('controlnet_mid_block.weight') && tensors.has('controlnet_cond_embedding.conv_in.weight');

/** By what differs in shape: XL is told sizes, and 2.x projects tokens with linear layers. */
function familyOf(tensors: NamedTensors): StableDiffusion {
  if (tensors.has('add_embedding.linear_1.weight')) return stableDiffusionXl;
  const projection = [...tensors].find(([name]) => name.endsWith('.proj_in.weight'));
  return projection?.[1].shape.length === 2 ? stableDiffusion2 : stableDiffusion1;
}
