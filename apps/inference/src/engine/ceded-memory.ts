import type { DrawingInProgress } from './drawing';
import type { EngineMessage } from './engine-protocol';
import type { Models } from './models';

/**
 * Memory that a device leaves to another process. Models make room for it once nothing is drawn with them. It waits for
 * no drawing that begins later: a model that is always in use would keep it out for ever.
 */
export class CededMemory {
  /** Drawings under way when it was asked for; undefined once the process may take it. */
  private drawnBefore?: ReadonlySet<DrawingInProgress> | undefined;

  constructor(
    private readonly models: Models,
    private readonly drawings: readonly DrawingInProgress[],
    private readonly report: (message: EngineMessage) => void,
  ) {}

  cede(bytes: number): void {
    this.models.cededBytes = bytes;
    this.drawnBefore = new Set(this.drawings);
  }

  /** Releases models that are not in use, as far as the other process needs their room, and says when it has it. */
  async makeRoom(): Promise<void> {
    const { drawnBefore } = this;
    const hasRoom = await this.models.makeCededRoom();
    if (!drawnBefore || (!hasRoom && this.drawings.some((drawing) => drawnBefore.has(drawing)))) return;
    this.drawnBefore = undefined;
    this.report({ type: 'ceded', bytes: this.models.cededBytes });
  }
}
