import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readFloats } from '../../libs/diffusion/src/safetensors/safetensors';
import { readSafetensorsHeader } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

const bundled = resolve('models', 'shapes');
const vaeFile = join('vae', 'diffusion_pytorch_model.safetensors');
/** Channels of each level of the quick decoder. */
const quickChannels = 4;
/** Channels of the latents and of a picture, which stay. */
const keptChannels = [22, 3];

/** How the quick model is trained in a second or two: little of it, and without pictures that it would have to draw. */
const quickTraining = { steps: 50, size: 256, rank: 2, layers: 'attention', learning_rate: 0.001, batch: 1 };

/** A folder of models in the one that `makeModelsFolder` makes. */
const trainable = '.trainable';

/** Where the quick model is the only one. */
export const trainableModels = (): string => join(process.env.TEST_MODELS_DIR!, trainable);

/**
 * Makes a folder of models for tests that look at tasks and not at pictures. `shapes` is the bundled model with a
 * decoder of random weights that takes a fraction of its time, and with little to train. `shapes-bundled` is the bundled
 * model, and not the first of the list, with which the page draws by default.
 */
export function makeModelsFolder(folder: string): void {
  cpSync(bundled, join(folder, 'shapes-bundled'), { recursive: true });
  // Nothing lists an unfinished model.
  const unfinished = join(folder, '.shapes');
  cpSync(bundled, unfinished, { recursive: true });
  replace(join(unfinished, vaeFile), (file) => encodeSafetensors(quickAutoencoder(file)));
  replace(join(unfinished, 'darkroom.json'), (file) =>
    JSON.stringify({ ...(JSON.parse(file.toString()) as object), training: quickTraining }),
  );
  cpSync(unfinished, join(folder, trainable, 'shapes'), { recursive: true });
  renameSync(unfinished, join(folder, 'shapes'));
}

function replace(path: string, change: (file: Buffer) => string | Buffer): void {
  const file = readFileSync(path);
  // A new file: the copy may be a link.
  rmSync(path);
  writeFileSync(path, change(file));
}

/** An autoencoder whose decoder has fewer channels. @param file of the whole one */
function quickAutoencoder(file: Buffer): Record<string, TensorToWrite> {
  const source = new BufferSource(file);
  const found: Record<string, TensorToWrite> = {};
  for (const [name, info] of readSafetensorsHeader(source).tensors) {
    const { shape } = info;
    if (!/^(?:decoder|post_quant_conv)\./.test(name)) {
      found[name] = { shape: [...shape], values: readFloats(source, info), dtype: info.dtype as 'F16' | 'F32' };
      continue;
    }
    const own = shape.map((length, axis) => (axis > 1 || keptChannels.includes(length) ? length : quickChannels));
    const size = own.reduce((product, length) => product * length, 1);
    const scale = shape.length > 1 ? 2 / Math.sqrt(size / own[0]) : 1;
    const value = (at: number): number => (shape.length > 1 ? Math.sin(1 + 7 * at) * scale : 1);
    found[name] = { shape: own, values: Float32Array.from({ length: size }, (_, at) => value(at)) };
  }
  return found;
}
