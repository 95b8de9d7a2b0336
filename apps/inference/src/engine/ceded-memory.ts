import type { DrawingInProgress } from './drawing';
import type { EngineMessage } from './engine-protocol';
import type { Models } from './models';

/**
 * Memory that a device leaves to another process. Models are released for it once they are not in use. The process is told
 * when it has the room; at the latest once all drawings have ended that were under way when it asked, because a model may
 * be in use for ever.
 */
export class CededMemory {
  /** Whether it asks for memory, and has not been attended to. */
  isAsked = false;
  /** Tasks that the process waits for; undefined once it has been told. */
  private tasksBefore?: ReadonlySet<number> | undefined;

  constructor(
    private readonly models: Models,
    private readonly drawings: readonly DrawingInProgress[],
    private readonly report: (message: EngineMessage) => void,
  ) {}

  cede(bytes: number): void {
    this.models.cededBytes = bytes;
    this.isAsked = true;
  }

  /** Releases models that are not in use, as far as the process needs their room, and reports when it has it. */
  async makeRoom(): Promise<void> {
    // A task that was about to begin when the command came is a drawing by now.
    if (this.isAsked) this.tasksBefore = new Set(this.drawings.map(({ task }) => task.id));
    this.isAsked = false;
    const { tasksBefore } = this;
    const hasRoom = await this.models.makeCededRoom();
    if (!tasksBefore || (!hasRoom && this.drawings.some(({ task }) => tasksBefore.has(task.id)))) return;
    this.tasksBefore = undefined;
    this.report({ type: 'ceded', bytes: this.models.cededBytes });
  }
}
