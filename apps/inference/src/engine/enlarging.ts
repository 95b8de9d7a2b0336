import { stat } from 'node:fs/promises';
import { executionProviders, type RgbImage, TiledUpscaler } from '@app/diffusion';
import type { ThreadOptions } from './admission';
import type { CallTimes } from './call-times';
import type { DrawingInProgress, Picture } from './drawing';
import type { EngineMessage, UpscalerSource } from './engine-protocol';
import { sessionBytes, tileBytes } from './memory';
import type { LoadedUpscaler, Models } from './models';

/** The picture that is being enlarged, tile by tile. */
export class Enlarging {
  private current?: { drawing: DrawingInProgress; key: string; ms: number; tiles?: AsyncGenerator<void, RgbImage> };

  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
    private readonly times: CallTimes,
    private readonly report: (message: EngineMessage) => void,
  ) {}

  /** Whose picture it is. */
  get drawing(): DrawingInProgress | undefined {
    return this.current?.drawing;
  }

  /** Key of the upscaler in use. */
  get upscaler(): string | undefined {
    return this.current?.key;
  }

  /** Loads the upscaler, or enlarges one tile. With the last one the picture is finished. */
  async goOn(drawing: DrawingInProgress, picture: Picture): Promise<void> {
    const startedAt = performance.now();
    const upscaler = drawing.task.upscaler!;
    const current = (this.current ??= { drawing, key: upscaler.key, ms: 0 });
    this.report({ type: 'busy', id: drawing.task.id });
    if (!current.tiles) {
      const { pipeline } = await this.load(upscaler);
      current.tiles = pipeline.enlarge(picture.image!, upscaler.maxLongEdge);
      return;
    }
    const { done, value } = await current.tiles.next();
    current.ms += performance.now() - startedAt;
    if (!done) return;
    this.times.note(upscaler.key, current.ms);
    picture.finished = value;
    this.current = undefined;
  }

  /** Gives up the picture that is being enlarged, if it is one of this drawing. */
  forget(drawing: DrawingInProgress): void {
    if (this.current?.drawing === drawing) this.current = undefined;
  }

  private async load({ key, file }: UpscalerSource): Promise<LoadedUpscaler> {
    const found = this.models.get<LoadedUpscaler>(key);
    if (found) return found;
    const { device, intraOpNumThreads } = this.options;
    // Without its arena the runtime frees the processor's memory between two operators: a fifth slower, with half the
    // memory.
    const options = { executionProviders: executionProviders(device), intraOpNumThreads, enableCpuMemArena: false };
    const bytes = (await stat(file)).size + sessionBytes;
    const loaded = await this.models.load<LoadedUpscaler>(key, bytes, () => TiledUpscaler.load(file, options));
    const { tile, scale } = loaded.pipeline;
    // A GPU has an arena in any case.
    if (device !== 'cpu') await this.models.reserve(loaded, { upscaler: tileBytes(tile, scale) });
    return loaded;
  }
}
