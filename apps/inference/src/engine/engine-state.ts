import type { EngineMessage } from './engine-protocol';

/** What an engine has loaded and what it is doing, as far as its thread has said. */
export interface EngineState {
  /** Tasks that it draws side by side. */
  tasks: number;
  /** Pictures that the last call of the U-Net moved on, and its milliseconds; 0 and null while nothing is drawn. */
  pictures: number;
  stepMs: number | null;
  /** The loaded models, and the estimated bytes of each. */
  loaded: { key: string; bytes: number }[];
  /** Bytes that models and drawing may take. */
  memoryBytes: number;
}

/** Follows the reports of an engine's thread. */
export class EngineStateReader {
  private readonly loaded = new Map<string, number>();
  private memoryBytes = 0;
  private last?: { pictures: number; stepMs: number };

  /** Keys of the models that it has loaded. */
  get loadedKeys(): ReadonlySet<string> {
    return new Set(this.loaded.keys());
  }

  note(report: EngineMessage): void {
    if (report.type === 'ready') this.memoryBytes = report.memoryBytes;
    else if (report.type === 'loaded') this.loaded.set(report.key, report.modelBytes);
    else if (report.type === 'released') this.loaded.delete(report.key);
    else if (report.type === 'stepped') this.last = { pictures: report.pictures, stepMs: report.stepMs };
  }

  /** Its thread has ended, with all that it had loaded. */
  clear(): void {
    this.loaded.clear();
    this.last = undefined;
  }

  /** @param tasks that it draws now */
  state(tasks: number): EngineState {
    const last = tasks > 0 ? this.last : undefined;
    return {
      tasks,
      pictures: last?.pictures ?? 0,
      stepMs: last ? Math.round(last.stepMs) : null,
      loaded: [...this.loaded].map(([key, bytes]) => ({ key, bytes })),
      memoryBytes: this.memoryBytes,
    };
  }
}
