import { AbortError, OutOfMemoryError } from '@app/diffusion';
import type { RgbImage } from '@app/diffusion';
import type { DrawingInProgress } from './drawing-in-progress';
import type { EngineMessage, UpscalerSource } from './engine-protocol';
import type { EngineShares } from './engine-shares';
import { failureOf } from './failure';
import type { LoadingOptions } from './model-loading';
import { loadUpscaler } from './model-loading';
import type { ModelRegistry } from './model-registry';
import type { OneAtATime } from './one-at-a-time';

/** A drawing whose pictures are decoded, and how many of them are enlarged. */
interface Entry {
  drawing: DrawingInProgress;
  source: UpscalerSource;
  pictures: readonly RgbImage[];
  enlarged: number;
}

/** What enlarging has to know of the engine, and what it tells it. */
export interface EnlargingHost {
  registry: ModelRegistry;
  shares: EngineShares;
  /** By which all work of the device is done. */
  device: OneAtATime;
  report: (message: EngineMessage) => void;
  /** An owner has one drawing less here. */
  left: (owner: string) => void;
}

/**
 * Enlarges one picture after the other, because each takes much memory: the next is that of the owner who has had least of the engine.
 * Each tile is a piece of work of its own, so that denoising goes on between two.
 */
export class Enlarging {
  private entries: Entry[] = [];
  private running: Promise<void> | undefined;
  private isClosed = false;

  constructor(
    private readonly options: LoadingOptions,
    private readonly host: EnlargingHost,
  ) {}

  /** Keys of the upscalers that are in use or are about to be. */
  get modelsInUse(): readonly string[] {
    return this.entries.map(({ source }) => source.key);
  }

  has(owner: string): boolean {
    return this.entries.some(({ drawing }) => drawing.owner === owner);
  }

  /** Enlarges, and reports how it went. @param drawing with all its pictures decoded */
  add(drawing: DrawingInProgress, source: UpscalerSource): void {
    this.entries.push({ drawing, source, pictures: drawing.decoded, enlarged: 0 });
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  /** Gives up what is being enlarged, at the next tile. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
  }

  /** Ends those that nobody wants any more. What is being enlarged ends at its next tile. */
  endAborted(): void {
    for (const entry of this.entries.filter(({ drawing }) => this.isClosed || drawing.isAborted))
      this.fail(entry, new AbortError());
  }

  private async run(): Promise<void> {
    for (let entry = this.next(); entry; entry = this.next())
      try {
        await this.enlargeNext(entry);
        if (entry.enlarged === entry.pictures.length) this.done(entry);
      } catch (error) {
        // Idle models make room, and the picture is tried again.
        if (error instanceof OutOfMemoryError && (await this.host.registry.releaseIdle())) continue;
        this.fail(entry, error);
      }
  }

  private next(): Entry | undefined {
    this.endAborted();
    const had = ({ drawing }: Entry): number => this.host.shares.of(drawing.owner);
    return this.entries.reduce<Entry | undefined>(
      (least, entry) => (least && had(least) <= had(entry) ? least : entry),
      undefined,
    );
  }

  private async enlargeNext(entry: Entry): Promise<void> {
    const { drawing, source, pictures, enlarged: index } = entry;
    const { registry, shares, device, report } = this.host;
    const { id } = drawing.command;
    const piece = <T>(work: () => Promise<T>): Promise<T> =>
      device.run(async () => {
        this.endAborted();
        if (!this.entries.includes(entry)) throw new AbortError();
        report({ type: 'busy', id });
        return work();
      });
    const tile = <T>(work: () => Promise<T>): Promise<T> =>
      piece(async () => {
        const before = drawing.computeMs;
        try {
          return await drawing.timed(work);
        } finally {
          shares.charge(drawing.owner, drawing.computeMs - before);
        }
      });
    const upscaler = await piece(() => loadUpscaler(registry, source, this.options));
    const original = pictures[index];
    const picture = await upscaler.enlarge(original, source.maxLongEdge, tile);
    entry.enlarged++;
    report({ type: 'picture', id, index, picture, upscaled: picture !== original });
  }

  private done(entry: Entry): void {
    const { command, computeMs } = entry.drawing;
    this.remove(entry);
    this.host.report({ type: 'done', id: command.id, computeMs });
  }

  /** Once is enough: one that was given up may fail besides. */
  private fail(entry: Entry, error: unknown): void {
    const { command } = entry.drawing;
    if (this.remove(entry)) this.host.report({ type: 'failed', id: command.id, ...failureOf(error, command) });
  }

  /** @returns whether it was there */
  private remove(entry: Entry): boolean {
    if (!this.entries.includes(entry)) return false;
    this.entries = this.entries.filter((other) => other !== entry);
    this.host.left(entry.drawing.owner);
    return true;
  }
}
