import type { Drawing } from './drawing';
import type { EngineMessage } from './engine-protocol';
import type { Models } from './models';

/**
 * Memory that a device leaves to another process. Models that are not in use are released for it. The process is told
 * when the memory is free, or when the drawings that were under way have ended: a busy model may never be released.
 */
export class CededMemory {
  /** Whether a request has come that `makeRoom` has not seen. */
  isRequested = false;
  /** Ids of the tasks that were drawn when the process asked; undefined once it has been told. */
  private tasksAtRequest?: ReadonlySet<number> | undefined;

  constructor(
    private readonly models: Models,
    private readonly drawings: readonly Drawing[],
    private readonly report: (message: EngineMessage) => void,
  ) {}

  cede(bytes: number): void {
    this.models.cededBytes = bytes;
    this.isRequested = true;
  }

  /** Releases models that are not in use, as far as necessary, and reports when the process may take its memory. */
  async makeRoom(): Promise<void> {
    // A task that was just beginning when the command came is a drawing by now.
    if (this.isRequested) this.tasksAtRequest = new Set(this.drawings.map(({ task }) => task.id));
    this.isRequested = false;
    const { tasksAtRequest } = this;
    const hasRoom = await this.models.makeCededRoom();
    if (!tasksAtRequest || (!hasRoom && this.drawings.some(({ task }) => tasksAtRequest.has(task.id)))) return;
    this.tasksAtRequest = undefined;
    this.report({ type: 'ceded', bytes: this.models.cededBytes });
  }
}
