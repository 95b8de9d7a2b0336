import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

const bundled = resolve('models', 'shapes');
const vaeFile = join('vae', 'diffusion_pytorch_model.safetensors');
/** Channels of each level of the quick decoder. */
const quickChannels = 4;
/** Channels of the latents and of a picture, which stay. */
const keptChannels = [22, 3];

/** A folder of models in the one that `makeModelsFolder` makes. */
const trainable = '.trainable';

/** Where the quick model is the only one. */
export const trainableModels = (): string => join(process.env.TEST_MODELS_DIR!, trainable);

/**
 * Makes a folder of models for tests that look at tasks and not at pictures. `shapes` is the bundled model with a
 * decoder of random weights that takes a fraction of its time. `shapes-bundled` is the bundled model, and not the first
 * of the list, with which the page draws by default.
 */
export function makeModelsFolder(folder: string): void {
  cpSync(bundled, join(folder, 'shapes-bundled'), { recursive: true });
  // Nothing lists an unfinished model.
  const unfinished = join(folder, '.shapes');
  cpSync(bundled, unfinished, { recursive: true });
  // A new file: the copy may be a link.
  rmSync(join(unfinished, vaeFile));
  writeFileSync(join(unfinished, vaeFile), encodeSafetensors(quickDecoder(readFileSync(join(bundled, vaeFile)))));
  cpSync(unfinished, join(folder, trainable, 'shapes'), { recursive: true });
  renameSync(unfinished, join(folder, 'shapes'));
}

/** The decoder of an autoencoder, with fewer channels. @param file of the autoencoder */
function quickDecoder(file: Buffer): Record<string, TensorToWrite> {
  const header = JSON.parse(file.toString('utf8', 8, 8 + Number(file.readBigUInt64LE()))) as Record<
    string,
    { shape?: number[] }
  >;
  const found: Record<string, TensorToWrite> = {};
  for (const [name, { shape }] of Object.entries(header)) {
    if (!shape || !/^(?:decoder|post_quant_conv)\./.test(name)) continue;
    const own = shape.map((length, axis) => (axis > 1 || keptChannels.includes(length) ? length : quickChannels));
    const size = own.reduce((product, length) => product * length, 1);
    const scale = shape.length > 1 ? 2 / Math.sqrt(size / own[0]) : 1;
    const value = (at: number): number => (shape.length > 1 ? Math.sin(1 + 7 * at) * scale : 1);
    found[name] = { shape: own, values: Float32Array.from({ length: size }, (_, at) => value(at)) };
  }
  return found;
}
