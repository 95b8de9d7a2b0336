import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readFloats } from '../../libs/diffusion/src/safetensors/safetensors';
import { readSafetensorsHeader } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

const bundled = resolve('models', 'shapes');
const weights = 'diffusion_pytorch_model.safetensors';
const vaeFile = join('vae', weights);
const unetFile = join('unet', weights);
const quickChannels = 4;
/** Channels of the latents and of a picture stay. */
const keptChannels = [22, 3];
const narrower = 4;

/** A training of a second or two, without pictures to draw. */
const quickTraining = { steps: 50, size: 256, rank: 2, layers: 'attention', learning_rate: 0.001, batch: 1 };

/** Folders inside that of `makeModelsFolder`. */
const [trainable, small] = ['.trainable', '.small'];

/** The folder with only the quick model. */
export const trainableModels = (): string => join(process.env.TEST_MODELS_DIR!, trainable);

/** The folder with only the model whose U-Net is small and random: it loads and trains in a fraction of the time. */
export const smallModels = (): string => join(process.env.TEST_MODELS_DIR!, small);

/** Copies of these models, with other training settings for `shapes`. */
export function modelsTrainedWith(models: string, settings: object): { folder: string; close: () => Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
  cpSync(models, folder, { recursive: true });
  changeJson(join(folder, 'shapes', 'darkroom.json'), ({ training }) => ({
    training: { ...(training as object), ...settings },
  }));
  return { folder, close: async () => rmSync(folder, { recursive: true }) };
}

/**
 * Makes a folder of models for tests of tasks, not of pictures. `shapes` is the bundled model with a quick decoder of
 * random weights and a short training. `shapes-bundled` is the bundled model, and not the first, which the page draws
 * with by default.
 */
export function makeModelsFolder(folder: string): void {
  cpSync(bundled, join(folder, 'shapes-bundled'), { recursive: true });
  // Unfinished models are not listed.
  const unfinished = join(folder, '.shapes');
  cpSync(bundled, unfinished, { recursive: true });
  replace(join(unfinished, vaeFile), (file) => encodeSafetensors(quickAutoencoder(file)));
  changeJson(join(unfinished, 'darkroom.json'), () => ({ training: quickTraining }));
  cpSync(unfinished, join(folder, trainable, 'shapes'), { recursive: true });
  cpSync(unfinished, join(folder, small, 'shapes'), { recursive: true });
  makeSmall(join(folder, small, 'shapes'));
  renameSync(unfinished, join(folder, 'shapes'));
}

function makeSmall(folder: string): void {
  replace(join(folder, unetFile), (file) => encodeSafetensors(smallUnet(file)));
  changeJson(join(folder, 'unet', 'config.json'), ({ block_out_channels: channels, norm_num_groups: groups }) => ({
    block_out_channels: (channels as number[]).map((count) => count / narrower),
    norm_num_groups: (groups as number) / 2,
  }));
  // Random weights learn only at a high rate.
  changeJson(join(folder, 'darkroom.json'), () => ({ training: { ...quickTraining, learning_rate: 0.1 } }));
}

function replace(path: string, change: (file: Buffer) => string | Buffer): void {
  const file = readFileSync(path);
  // A new file: the copy may be a link.
  rmSync(path);
  writeFileSync(path, change(file));
}

function changeJson(path: string, change: (json: Record<string, unknown>) => object): void {
  replace(path, (file) => {
    const json = JSON.parse(file.toString()) as Record<string, unknown>;
    return JSON.stringify({ ...json, ...change(json) });
  });
}

/** @param file of the whole one */
const quickAutoencoder = (file: Buffer): Record<string, TensorToWrite> =>
  withRandomWeights(file, /^(?:decoder|post_quant_conv)\./, () => quickChannels);

/** Takes texts as the whole one does. @param file of the whole one */
const smallUnet = (file: Buffer): Record<string, TensorToWrite> =>
  withRandomWeights(file, /./, (length, name, axis) =>
    axis === 1 && /attn2\.to_[kv]\./.test(name) ? length : length / narrower,
  );

/**
 * A file's tensors, some with random values.
 * @param which names of the random ones
 * @param channels new length of an axis of these that has this length in the file
 */
function withRandomWeights(
  file: Buffer,
  which: RegExp,
  channels: (length: number, name: string, axis: number) => number,
): Record<string, TensorToWrite> {
  const source = new BufferSource(file);
  const found: Record<string, TensorToWrite> = {};
  for (const [name, info] of readSafetensorsHeader(source).tensors) {
    const { shape } = info;
    if (!which.test(name)) {
      found[name] = { shape: [...shape], values: readFloats(source, info), dtype: info.dtype as 'F16' | 'F32' };
      continue;
    }
    const own = shape.map((length, axis) =>
      axis > 1 || keptChannels.includes(length) ? length : channels(length, name, axis),
    );
    const size = own.reduce((product, length) => product * length, 1);
    const scale = shape.length > 1 ? 2 / Math.sqrt(size / own[0]) : 1;
    const value = (at: number): number => (shape.length > 1 ? Math.sin(1 + 7 * at) * scale : 1);
    found[name] = { shape: own, values: Float32Array.from({ length: size }, (_, at) => value(at)) };
  }
  return found;
}
