import { ImageTask } from '@app/domain';
import { queuePositions } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { inSlices } from './in-slices';

/** Positions are looked up no more often than this, and take no more than so much of the time. */
const restMs = 1_000;
const restShare = 20;
/** Tasks that one look-up asks for. */
const lookUpAtOnce = 200;

/** Looks up the places in the queue of all tasks that are followed, together, when the queue has moved. */
@Injectable()
export class QueuePositions {
  private readonly wanted = new Set<string>();
  private tell: (taskId: string, position: number) => void = () => undefined;
  private timer?: NodeJS.Timeout;
  private isLooking = false;
  private hasMoved = false;
  private nextAt = 0;
  private stopped = false;

  constructor(
    @InjectRepository(ImageTask) private readonly tasks: Repository<ImageTask>,
    private readonly logger: JsonLogger,
  ) {}

  /** Who is told. */
  onPosition(tell: (taskId: string, position: number) => void): void {
    this.tell = tell;
  }

  /** Has the position of a queued task told, now and when it changes. One that no engine draws is the next. */
  want({ id, sandbox }: Pick<ImageTask, 'id' | 'sandbox'>): void {
    if (sandbox) return this.tell(id, 0);
    this.wanted.add(id);
    this.moved();
  }

  /** It is queued no more, or nobody asks. */
  forget(id: string): void {
    this.wanted.delete(id);
  }

  /** A task was claimed, has ended or was put back. */
  moved(): void {
    this.hasMoved = this.wanted.size > 0;
    if (!this.hasMoved || this.timer || this.isLooking || this.stopped) return;
    this.timer = setTimeout(() => void this.look(), Math.max(0, this.nextAt - performance.now()));
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private async look(): Promise<void> {
    const startedAt = performance.now();
    this.timer = undefined;
    this.isLooking = true;
    this.hasMoved = false;
    try {
      const ids = [...this.wanted];
      for (let at = 0; at < ids.length && !this.stopped; at += lookUpAtOnce) {
        const positions = await queuePositions(this.tasks.manager, ids.slice(at, at + lookUpAtOnce));
        await inSlices([...positions], ([id, position]) => this.tell(id, position));
      }
    } catch (error) {
      // The rows are read again shortly, and with them the positions.
      this.logger.debug('positions could not be looked up', { reason: (error as Error).message });
    } finally {
      const endedAt = performance.now();
      this.nextAt = endedAt + Math.max(restMs, restShare * (endedAt - startedAt));
      this.isLooking = false;
      if (this.hasMoved) this.moved();
    }
  }
}
