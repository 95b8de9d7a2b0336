import { AbortError } from '@app/diffusion';
import type { DrawingInProgress } from './drawing-in-progress';
import type { EngineMessage, UpscalerSource } from './engine-protocol';
import { failureOf } from './failure';
import type { LoadingOptions } from './model-loading';
import { loadUpscaler } from './model-loading';
import type { ModelRegistry } from './model-registry';
import { OneAtATime } from './one-at-a-time';

/** Enlarges the pictures of one drawing after the other. Each tile is a piece of work of its own, so that denoising goes on between two. */
export class Enlarging {
  private readonly drawings = new OneAtATime();
  private readonly waiting: string[] = [];
  private isClosed = false;

  /** @param device by which all work of the device is done */
  constructor(
    private readonly registry: ModelRegistry,
    private readonly options: LoadingOptions,
    private readonly device: OneAtATime,
    private readonly report: (message: EngineMessage) => void,
  ) {}

  /** Keys of the upscalers that are in use or are about to be. */
  get modelsInUse(): readonly string[] {
    return this.waiting;
  }

  /** Enlarges, and reports how it went. @param drawing with all its pictures decoded */
  add(drawing: DrawingInProgress, source: UpscalerSource): void {
    const { command } = drawing;
    this.waiting.push(source.key);
    void this.drawings.run(async () => {
      try {
        await this.enlarge(drawing, source);
        this.report({ type: 'done', id: command.id, computeMs: drawing.computeMs });
      } catch (error) {
        this.report({ type: 'failed', id: command.id, ...failureOf(error, command) });
      } finally {
        this.waiting.splice(this.waiting.indexOf(source.key), 1);
      }
    });
  }

  /** Gives up what is being enlarged, at the next tile. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.drawings.idle();
  }

  private async enlarge(drawing: DrawingInProgress, source: UpscalerSource): Promise<void> {
    const piece = <T>(work: () => Promise<T>): Promise<T> =>
      this.device.run(async () => {
        if (this.isClosed || drawing.isAborted) throw new AbortError();
        this.report({ type: 'busy', id: drawing.command.id });
        return work();
      });
    const tile = <T>(work: () => Promise<T>): Promise<T> => piece(() => drawing.timed(work));
    const upscaler = await piece(() => loadUpscaler(this.registry, source, this.options));
    for (const [index, original] of drawing.decoded.entries()) {
      const picture = await upscaler.enlarge(original, source.maxLongEdge, tile);
      this.report({ type: 'picture', id: drawing.command.id, index, picture, upscaled: picture !== original });
    }
  }
}
