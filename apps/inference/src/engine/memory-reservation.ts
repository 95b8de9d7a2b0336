import type { Models } from './models';
import type { RunningTask } from './running-task';

/**
 * Memory that a device leaves to another process. Models that are not in use are released for it. The process may take
 * it when it is free, or when the tasks that ran have ended: a model in use may never be released.
 */
export class MemoryReservation {
  /** Whether `makeRoom` has not seen the last request. */
  isRequested = false;
  /** Ids of the tasks that ran when the process asked; undefined once it has its answer. */
  private tasksAtRequest?: ReadonlySet<number> | undefined;

  constructor(
    private readonly models: Models,
    private readonly running: readonly RunningTask[],
  ) {}

  request(bytes: number): void {
    this.models.reservedBytes = bytes;
    this.isRequested = true;
  }

  /** Releases models that are not in use, as far as necessary. @returns whether the process may now take its memory */
  async makeRoom(): Promise<boolean> {
    // A task that was just beginning when the command came runs by now.
    if (this.isRequested) this.tasksAtRequest = new Set(this.running.map(({ task }) => task.id));
    this.isRequested = false;
    const { tasksAtRequest } = this;
    const hasRoom = await this.models.makeReservedRoom();
    if (!tasksAtRequest || (!hasRoom && this.running.some(({ task }) => tasksAtRequest.has(task.id)))) return false;
    this.tasksAtRequest = undefined;
    return true;
  }
}
