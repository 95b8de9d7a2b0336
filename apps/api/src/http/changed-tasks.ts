/** The rows are read this often in case a notification was missed. */
const rereadMs = 3_000;
/** Rows that one statement reads. */
const readAtOnce = 500;

interface ChangedTasksInputs {
  /** Ids of all tasks that anybody here wants to know of. */
  watched: () => Iterable<string>;
  /** Reads the rows of some tasks, and tells whom they concern. */
  readRows: (ids: readonly string[]) => Promise<void>;
  /** A read that failed: the next one of all rows finds what it missed. */
  failed: (error: Error) => void;
}

/**
 * Reads the rows of changed tasks in one statement at a time, together with all that change during the one before; and
 * all rows every few seconds.
 */
export class ChangedTasks {
  private readonly changed = new Set<string>();
  private isReading = false;
  private timer?: NodeJS.Timeout;

  constructor(private readonly inputs: ChangedTasksInputs) {}

  start(): void {
    this.timer = setInterval(() => this.add(this.inputs.watched()), rereadMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Has rows read: they have changed, or somebody wants to know of them from now on. */
  add(ids: Iterable<string>): void {
    for (const id of ids) this.changed.add(id);
    if (this.isReading || this.changed.size === 0) return;
    this.isReading = true;
    void this.readAll()
      .catch(this.inputs.failed)
      .finally(() => {
        this.isReading = false;
        this.add([]);
      });
  }

  private async readAll(): Promise<void> {
    while (this.changed.size > 0) {
      const ids = [...this.changed].slice(0, readAtOnce);
      for (const id of ids) this.changed.delete(id);
      await this.inputs.readRows(ids);
    }
  }
}
