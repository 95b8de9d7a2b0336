import { stat } from 'node:fs/promises';
import { executionProviders } from '@app/diffusion';
import type { UpscalerSource } from '../engine-protocol';
import { tileBytes } from '../memory/picture-memory';
import { memoryOfFiles, sessionBytes } from '../memory/session-memory';
import type { LoadingOptions } from '../models/model-loading';
import type { ModelRegistry } from '../models/model-registry';
import { TiledUpscaler } from './tiled-upscaler';

/**
 * Loads an upscaler, and makes room for its calls, all of which have tiles of one size.
 * @throws UpscalerError with one sentence saying why the file cannot be used
 * @throws OutOfMemoryError if it needs more than there is
 */
export async function loadUpscaler(
  registry: ModelRegistry,
  { key, file }: UpscalerSource,
  { device, intraOpNumThreads, side }: LoadingOptions,
): Promise<TiledUpscaler> {
  // Without its arena the runtime frees the processor's memory between two operators: a fifth slower, with half the
  // memory.
  const options = { executionProviders: executionProviders(device), intraOpNumThreads, enableCpuMemArena: false };
  const upscaler = await registry.get(key, async () => ({
    bytes: memoryOfFiles((await stat(file)).size) + sessionBytes,
    load: () => (side ? TiledUpscaler.over(() => side.openFile(file, options)) : TiledUpscaler.load(file, options)),
  }));
  // A GPU has an arena in any case.
  if (device !== 'cpu') await registry.reserve(key, { upscaler: tileBytes(upscaler.tile, upscaler.scale) });
  return upscaler;
}
