import type { RgbImage } from '@app/diffusion';
import { AbortError } from '@app/diffusion';
import { bytesPerImage } from './batch-plan';
import { chooseDevice, defaultMemoryBytes } from './device';
import { drawPictures } from './drawing';
import type { EngineCommand, EngineReport, EngineSettings, UpscalerSource } from './engine-protocol';
import { failureOf } from './failure';
import type { LoadingOptions } from './model-loading';
import { loadPipeline, loadUpscaler } from './model-loading';
import { ModelRegistry } from './model-registry';

type DrawCommand = Extract<EngineCommand, { type: 'draw' }>;

/** The work of an engine thread, independent of the thread: loads models on its device and draws. */
export class EngineWork {
  private readonly registry: ModelRegistry;

  private constructor(
    private readonly options: LoadingOptions,
    private readonly memoryBytes: number,
    private readonly report: (message: EngineReport) => void,
  ) {
    this.registry = new ModelRegistry(memoryBytes, (loaded) => report({ type: 'loaded', ...loaded }));
  }

  /** Chooses the device and reports `ready`. */
  static async start(settings: EngineSettings, report: (message: EngineReport) => void): Promise<EngineWork> {
    const { intraOpNumThreads, cacheDir, mergedCacheBytes } = settings;
    const chosen = await chooseDevice(settings.device);
    const memoryBytes = settings.memoryBytes ?? (await defaultMemoryBytes(chosen.device));
    report({ type: 'ready', ...chosen });
    return new EngineWork(
      { device: chosen.device, intraOpNumThreads, cacheDir, mergedCacheBytes },
      memoryBytes,
      report,
    );
  }

  /** Draws, and reports the outcome; never throws. */
  async draw(command: DrawCommand): Promise<void> {
    const { id, model, request, upscaler } = command;
    const flag = new Int32Array(command.cancel);
    const aborted = (): boolean => Atomics.load(flag, 0) !== 0;
    try {
      if (aborted()) throw new AbortError();
      const pipeline = await loadPipeline(this.registry, model, this.options);
      const room = this.memoryBytes - this.registry.bytes;
      const startedAt = performance.now();
      const drawn: RgbImage[] = [];
      await drawPictures(pipeline, request, room / bytesPerImage(pipeline.facts, request), {
        aborted,
        started: (started) => this.report({ type: 'started', id, ...started }),
        progress: (progress) => this.report({ type: 'progress', id, ...progress }),
        picture: (index, picture) => {
          if (upscaler) drawn.push(picture);
          else this.report({ type: 'picture', id, index, picture, upscaled: false });
        },
      });
      if (upscaler) await this.enlarge(id, drawn, upscaler, aborted);
      this.report({ type: 'done', id, computeMs: performance.now() - startedAt });
    } catch (error) {
      this.report({ type: 'failed', id, ...failureOf(error, command) });
    }
  }

  close(): Promise<void> {
    return this.registry.clear();
  }

  /** Runs after the drawing, because the upscaler may need the memory of the model. */
  private async enlarge(
    id: number,
    drawn: readonly RgbImage[],
    source: UpscalerSource,
    aborted: () => boolean,
  ): Promise<void> {
    const upscaler = await loadUpscaler(this.registry, source, this.options);
    const atTile = (): boolean => {
      this.report({ type: 'busy', id });
      return aborted();
    };
    for (const [index, original] of drawn.entries()) {
      const picture = await upscaler.enlarge(original, source.maxLongEdge, atTile);
      this.report({ type: 'picture', id, index, picture, upscaled: picture !== original });
    }
  }
}
