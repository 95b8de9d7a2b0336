import { AbortError, type RgbImage } from '@app/diffusion';
import type { OneAtATime } from '@app/process';
import type { DrawingInProgress } from '../calls/drawing-in-progress';
import type { EngineMessage, UpscalerSource } from '../engine-protocol';
import type { EngineShares } from '../time/engine-shares';
import { failureOf } from '../failure';
import type { LoadingOptions } from '../models/model-loading';
import type { ModelRegistry } from '../models/model-registry';
import { nextTry } from '../models/next-try';
import type { WorkClocks } from '../time/work-clock';
import { loadUpscaler } from './load-upscaler';

/** A drawing whose pictures are decoded, and how many of them are enlarged. */
interface Entry {
  drawing: DrawingInProgress;
  source: UpscalerSource;
  pictures: readonly RgbImage[];
  enlarged: number;
  /**
   * Whether nothing else may be drawn or enlarged beside it: beside others it ran out of memory, here or when it was
   * drawn.
   */
  alone: boolean;
}

/** What enlarging has to know of the engine, and what it tells it. */
export interface EnlargingHost {
  registry: ModelRegistry;
  shares: EngineShares;
  /** That upscalers are loaded in: it does one piece of work after the other. */
  thread: Pick<OneAtATime, 'run'>;
  clocks: Pick<WorkClocks, 'others'>;
  /** Whether anything is being drawn. */
  isDrawing: () => boolean;
  /** Drawings that have something to draw, each with its owner: for these a tile waits. */
  withWork: () => readonly { owner: string }[];
  report: (message: EngineMessage) => void;
  /** An owner has one drawing less here. */
  left: (owner: string) => void;
}

/**
 * Enlarges one picture after the other, because each takes much memory: the next is that of the owner who has had least
 * of the engine. Each tile is a piece of work of its own, so that denoising goes on between two, and waits while owners
 * who draw are behind.
 */
export class Enlarging {
  private entries: Entry[] = [];
  private running: Promise<void> | undefined;
  private isClosed = false;
  private onRound = (): void => undefined;
  /** What the last tile took. */
  private tileMs = 0;

  constructor(
    private readonly options: LoadingOptions,
    private readonly host: EnlargingHost,
  ) {}

  /** Keys of the upscalers that are in use or are about to be. */
  get modelsInUse(): readonly string[] {
    return this.entries.map(({ source }) => source.key);
  }

  /** Whether what is being enlarged, or waits for it, wants nothing beside it. */
  get wantsToBeAlone(): boolean {
    return this.entries.some(({ alone }) => alone);
  }

  /** Whose pictures are enlarged, or wait for it. */
  get owners(): readonly string[] {
    return this.entries.map(({ drawing }) => drawing.owner);
  }

  /** Enlarges, and reports how it went. @param drawing with all its pictures decoded */
  add(drawing: DrawingInProgress, source: UpscalerSource): void {
    const alone = drawing.command.alone ?? false;
    this.entries.push({ drawing, source, pictures: drawing.decoded, enlarged: 0, alone });
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  /** Gives up what is being enlarged, at the next tile. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.wake();
    await this.running;
  }

  /** Lets a tile that waits look again whether it may go on. */
  wake(): void {
    this.onRound();
  }

  /** Ends those that nobody wants any more. What is being enlarged ends at its next tile. */
  endAborted(): void {
    for (const entry of this.entries.filter(({ drawing }) => this.isClosed || drawing.isAborted))
      this.fail(entry, new AbortError());
  }

  private async run(): Promise<void> {
    while (this.entries.length > 0) {
      this.endAborted();
      const entry = this.leastServed;
      if (entry?.alone && this.host.isDrawing()) await this.nextRound();
      else if (entry) await this.goOnWith(entry);
    }
  }

  private async goOnWith(entry: Entry): Promise<void> {
    try {
      await this.enlargeNext(entry);
      if (entry.enlarged === entry.pictures.length) this.done(entry);
    } catch (error) {
      const { registry } = this.host;
      const next = await nextTry(error, { registry, hasOthers: () => !entry.alone && this.hasOthers });
      if (next === 'alone') entry.alone = true;
      else if (next === 'end') this.fail(entry, error);
    }
  }

  /** Of the owner who has had least; those that want nothing beside them come after all others. */
  private get leastServed(): Entry | undefined {
    const had = ({ drawing }: Entry): number => this.host.shares.of(drawing.owner);
    const beside = this.entries.filter(({ alone }) => !alone);
    return (beside.length > 0 ? beside : this.entries).reduce<Entry | undefined>(
      (least, entry) => (least && had(least) <= had(entry) ? least : entry),
      undefined,
    );
  }

  private async enlargeNext(entry: Entry): Promise<void> {
    const { drawing, source, pictures, enlarged: index } = entry;
    const { registry, shares, thread, clocks, report } = this.host;
    const { id, cancel } = drawing.command;
    const piece = <T>(work: () => Promise<T>): Promise<T> =>
      thread.run(async () => {
        this.endAborted();
        this.throwIfEnded(entry);
        report({ type: 'busy', id });
        return work();
      });
    const tile = async <T>(work: () => Promise<T>): Promise<T> => {
      await this.untilDue(entry);
      return piece(() =>
        clocks.others.during(
          work,
          ({ ms, blockedMs }) => {
            this.tileMs = ms;
            shares.noteBlocked(blockedMs);
            drawing.computeMs += ms;
            shares.charge(drawing.owner, ms);
          },
          cancel,
        ),
      );
    };
    const load = () => loadUpscaler(registry, source, this.options);
    const upscaler = await piece(() => shares.chargeFor(drawing.owner, load));
    const original = pictures[index];
    const picture = await upscaler.enlarge(original, source.maxLongEdge, tile);
    // It may have been given up during the last tile.
    this.throwIfEnded(entry);
    entry.enlarged++;
    report({ type: 'picture', id, index, picture, upscaled: picture !== original });
  }

  private throwIfEnded(entry: Entry): void {
    if (!this.entries.includes(entry)) throw new AbortError();
  }

  /**
   * Waits while each owner of what is enlarged has had more than one who has something to draw: while a picture is
   * enlarged, those of the others wait for it, so it goes on for whoever of them has had least. A tile may take longer
   * than a whole drawing, so none is let go ahead, as steps are: beside a drawing go as many as have its time, and one.
   * It waits for no more than twice as long as it would with equal shares, because owners who keep coming begin level
   * with those who have had least.
   */
  private async untilDue(entry: Entry): Promise<void> {
    const { withWork, shares } = this.host;
    const startedAt = performance.now();
    const isHeld = (): boolean => {
      const [least, drawn] = [this.leastServed, withWork()];
      if (this.isClosed || !least || !this.entries.includes(entry)) return false;
      const owners = new Set(drawn.map(({ owner }) => owner));
      const had = shares.of(least.drawing.owner);
      if ([...owners].every((owner) => had <= shares.of(owner))) return false;
      return performance.now() - startedAt < 2 * owners.size * this.tileMs;
    };
    while (isHeld()) await this.nextRound();
  }

  /** Resolves at the next round of the loop. */
  private nextRound(): Promise<void> {
    return new Promise((resolve) => (this.onRound = resolve));
  }

  private get hasOthers(): boolean {
    return this.host.isDrawing() || this.entries.length > 1;
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
