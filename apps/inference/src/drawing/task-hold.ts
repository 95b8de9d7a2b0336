import type { ImageTask } from '@app/domain';
import type { ImageTaskLifeCycle } from '@app/image-tasks';
import type { JsonLogger } from '@app/observability';
import type { StopListener } from './stop-listener';

/** A worker says this often that it is alive; five of these are missed before the task is taken from it. */
const heartbeatIntervalMs = 2_000;

/** A claimed task while it is drawn: keeps the claim alive, and says when it is lost or to be given up. */
export class TaskHold {
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private readonly stopListening: () => void;
  private readonly onShutdown = (): void => this.controller.abort();
  private beating = false;
  private isLost = false;

  constructor(
    private readonly task: Pick<ImageTask, 'id' | 'attempt'>,
    private readonly lifeCycle: ImageTaskLifeCycle,
    stops: StopListener,
    private readonly shutdown: AbortSignal,
    private readonly logger: JsonLogger,
  ) {
    this.timer = setInterval(() => void this.beat(), heartbeatIntervalMs);
    this.stopListening = stops.on(task.id, () => this.lose());
    shutdown.addEventListener('abort', this.onShutdown);
    if (shutdown.aborted) this.onShutdown();
  }

  /** Aborted when the task is lost and when this process is to end. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the task belongs to nobody or to another attempt now, so that nothing may be written for it. */
  get lost(): boolean {
    return this.isLost;
  }

  /** Called, too, when a write finds that the row no longer carries this attempt. */
  lose(): void {
    this.isLost = true;
    this.controller.abort();
  }

  end(): void {
    clearInterval(this.timer);
    this.stopListening();
    this.shutdown.removeEventListener('abort', this.onShutdown);
  }

  private async beat(): Promise<void> {
    if (this.beating) return;
    this.beating = true;
    try {
      if (!(await this.lifeCycle.heartbeat(this.task))) this.lose();
    } catch (error) {
      // The database may be back before the claim runs out.
      this.logger.warn('a heartbeat failed', { taskId: this.task.id, reason: (error as Error).message });
    } finally {
      this.beating = false;
    }
  }
}
