import { join } from 'node:path';
import { readJsonFile } from '@app/diffusion/files';
import type { InstalledModel } from '@app/model-store';

/** Properties of a model, from its own files. */
export interface ModelFacts {
  /** diffusers' class name of its scheduler; null if the file cannot be read. */
  scheduler: string | null;
  /**
   * Edge in pixels of the square pictures it was trained on; where its graphs were exported for one
   * size, the height of that.
   */
  nativeSize: number;
}

/** Blocks of a VAE that does not say: every Stable Diffusion 1.x and 2.x has four. */
const defaultBlocks = 4;

/** diffusers' own default for `OnnxStableDiffusionPipeline`, whose folders may omit it. */
const defaultNativeSize = 512;

/** Reads the small JSON files of a model folder; defaults are the same as in drawing. */
export async function readModelFacts({ folder, fixed }: Pick<InstalledModel, 'folder' | 'fixed'>): Promise<ModelFacts> {
  const [scheduler, unet, vae] = await Promise.all([
    readJson(join(folder, 'scheduler', 'scheduler_config.json')),
    readJson(join(folder, 'unet', 'config.json')),
    readJson(join(folder, 'vae_decoder', 'config.json')),
  ]);
  const name = scheduler._class_name;
  const sampleSize = unet.sample_size;
  const blocks = vae.block_out_channels;
  // Each block of the VAE but the last doubles the edge (diffusers' `vae_scale_factor`).
  const factor = 2 ** ((Array.isArray(blocks) && blocks.length > 0 ? blocks.length : defaultBlocks) - 1);
  const trained = typeof sampleSize === 'number' && sampleSize > 0 ? sampleSize * factor : defaultNativeSize;
  return {
    scheduler: typeof name === 'string' ? name : null,
    nativeSize: fixed.height ?? trained,
  };
}

/** The model store has checked the folder; an optional file may be missing here. */
async function readJson(path: string): Promise<Record<string, unknown>> {
  return (await readJsonFile(path, { optional: true }).catch(() => undefined)) ?? {};
}
