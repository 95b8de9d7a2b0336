import type { Attempt } from '@app/domain';
import type { JsonLogger } from '@app/observability';
import { heartbeatTimeoutMs } from './silence';
import type { Tasks } from './tasks';

/** Interval of a worker's heartbeats; the worker loses the task after five missed ones. */
const heartbeatIntervalMs = heartbeatTimeoutMs / 5;

/** Tells of tasks that were canceled or deleted. */
export interface TaskStops {
  /** Calls `handler` when the task is to be stopped, until the returned function is called. */
  on(taskId: string, handler: () => void): () => void;
}

/** A claimed task while it is worked on: sends heartbeats, and knows when the task is lost or must be given back. */
export class TaskHold {
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private readonly stopListening: () => void;
  private readonly onShutdown = (): void => this.controller.abort();
  /** Compute seconds that the attempt has used and nobody has written yet. */
  usedSeconds = 0;
  private beating = false;
  private isLost = false;

  constructor(
    private readonly task: Attempt,
    private readonly tasks: Tasks,
    stops: TaskStops,
    private readonly shutdown: AbortSignal,
    private readonly logger: JsonLogger,
  ) {
    this.timer = setInterval(() => void this.beat(), heartbeatIntervalMs);
    this.stopListening = stops.on(task.id, () => this.lose());
    shutdown.addEventListener('abort', this.onShutdown);
    if (shutdown.aborted) this.onShutdown();
  }

  /** Aborts when the task is lost and when this process ends. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the claim is no longer valid, so that nothing may be written for the task. */
  get lost(): boolean {
    return this.isLost;
  }

  /** Also called when a write finds that the row no longer carries this attempt. */
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
      if (!(await this.tasks.heartbeat(this.task))) this.lose();
    } catch (error) {
      // The database may return before the claim expires.
      this.logger.warn('a heartbeat failed', { taskId: this.task.id, reason: (error as Error).message });
    } finally {
      this.beating = false;
    }
  }
}
