import { stat } from 'node:fs/promises';
import { executionProviders, TiledUpscaler } from '@app/diffusion';
import type { CallTimes } from './call-times';
import type { RunningTask, Picture } from './running-task';
import type { EngineMessage, RgbImage, ThreadOptions, UpscalerSource } from './engine-protocol';
import { sessionBytes, tileBytes } from './memory';
import type { LoadedUpscaler, Models } from './models';

/** A picture that is being upscaled, and the milliseconds of its tiles so far. */
interface PictureToUpscale {
  running: RunningTask;
  picture: Picture;
  upscaler: UpscalerSource;
  tiles?: AsyncGenerator<void, RgbImage> | undefined;
  ms: number;
}

/** Upscales one picture after the other, tile by tile. */
export class Upscaling {
  private current: PictureToUpscale | undefined;

  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
    private readonly times: CallTimes,
    private readonly report: (message: EngineMessage) => void,
  ) {}

  /** Of what is in use. */
  get modelKeys(): string[] {
    return this.current ? [this.current.upscaler.key] : [];
  }

  /** The picture that is being upscaled; if there is none, the next one of this task, from now on. */
  pictureFor(next: RunningTask): PictureToUpscale {
    const upscaler = next.task.upscaler!;
    return (this.current ??= { running: next, picture: next.toUpscale!, upscaler, ms: 0 });
  }

  /** Loads the upscaler, or upscales the next tile. With the last tile the picture is finished. */
  async upscaleNextTile(current: PictureToUpscale): Promise<void> {
    const { running, picture, upscaler, tiles } = current;
    const startedAt = performance.now();
    this.report({ type: 'busy', id: running.task.id });
    // The tiles are put back after one succeeds. After an error the picture is upscaled from its first tile.
    current.tiles = undefined;
    if (!tiles) {
      current.ms = 0;
      const { instance } = await this.load(upscaler);
      current.tiles = instance.enlarge(picture.decoded!, upscaler.maxLongEdge);
      return;
    }
    const { done, value } = await tiles.next();
    current.ms += performance.now() - startedAt;
    if (!done) return void (current.tiles = tiles);
    picture.finished = value;
    this.current = undefined;
    // A picture that would become too large stays as it is.
    if (value !== picture.decoded) this.times.recordWork(upscaler.key, current.ms);
  }

  /** Abandons the picture that is being upscaled, if it belongs to this task. */
  abandon(running: RunningTask): void {
    if (this.current?.running === running) this.current = undefined;
  }

  private async load({ key, file }: UpscalerSource): Promise<LoadedUpscaler> {
    const found = this.models.get<LoadedUpscaler>(key);
    if (found) return found;
    const { device, intraOpNumThreads } = this.options;
    // Without an arena the runtime frees the processor's memory after each operator: that is a fifth slower, and takes
    // half the memory.
    const options = { executionProviders: executionProviders(device), intraOpNumThreads, enableCpuMemArena: false };
    const bytes = (await stat(file)).size + sessionBytes;
    const loaded = await this.models.load<LoadedUpscaler>(key, bytes, () => TiledUpscaler.load(file, options));
    const { tile, scale } = loaded.instance;
    await this.models.keepForCalls(loaded, { upscaler: tileBytes(tile, scale) });
    return loaded;
  }
}
