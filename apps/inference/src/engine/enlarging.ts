import { stat } from 'node:fs/promises';
import { executionProviders, type RgbImage, TiledUpscaler } from '@app/diffusion';
import type { ThreadOptions } from './admission';
import type { CallTimes } from './call-times';
import type { DrawingInProgress, Picture } from './drawing';
import type { EngineMessage, UpscalerSource } from './engine-protocol';
import { sessionBytes, tileBytes } from './memory';
import type { LoadedUpscaler, Models } from './models';

/** A picture that is being enlarged, and the milliseconds that it has taken. */
interface Enlarged {
  drawing: DrawingInProgress;
  picture: Picture;
  upscaler: UpscalerSource;
  tiles?: AsyncGenerator<void, RgbImage> | undefined;
  ms: number;
}

/** Enlarges one picture after the other, tile by tile. */
export class Enlarging {
  private current: Enlarged | undefined;

  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
    private readonly times: CallTimes,
    private readonly report: (message: EngineMessage) => void,
  ) {}

  /** Key of the upscaler in use. */
  get upscaler(): string | undefined {
    return this.current?.upscaler.key;
  }

  /** The picture that is being enlarged, else the next one of this drawing. */
  currentOr(next: DrawingInProgress): Enlarged {
    const upscaler = next.task.upscaler!;
    return (this.current ??= { drawing: next, picture: next.toEnlarge!, upscaler, ms: 0 });
  }

  /** Loads the upscaler, or enlarges one tile. With the last one the picture is finished. */
  async goOn(): Promise<void> {
    const current = this.current!;
    const { drawing, picture, upscaler } = current;
    const startedAt = performance.now();
    this.report({ type: 'busy', id: drawing.task.id });
    // After an error it begins anew.
    const { tiles } = current;
    current.tiles = undefined;
    if (!tiles) {
      const { pipeline } = await this.load(upscaler);
      current.tiles = pipeline.enlarge(picture.image!, upscaler.maxLongEdge);
      return;
    }
    const { done, value } = await tiles.next();
    current.ms += performance.now() - startedAt;
    if (!done) {
      current.tiles = tiles;
      return;
    }
    picture.finished = value;
    this.current = undefined;
    this.times.note(upscaler.key, current.ms);
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
