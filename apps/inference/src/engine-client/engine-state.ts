import type { EngineMessage } from '../engine/engine-protocol';

/** The models and the work of an engine, as far as its thread has said. */
export interface EngineState {
  tasks: number;
  /** Pictures that the last call of the denoiser moved on, and its milliseconds; 0 and null while nothing is drawn. */
  pictures: number;
  stepMs: number | null;
  /** The loaded models, and the estimated bytes of each. */
  loaded: { key: string; bytes: number }[];
  /** Bytes that models and drawing may take. */
  memoryBytes: number;
}

/** Follows the messages of an engine's thread. */
export class EngineStateReader {
  private readonly loaded = new Map<string, number>();
  private memoryBytes = 0;
  private last?: { pictures: number; stepMs: number };

  get loadedKeys(): ReadonlySet<string> {
    return new Set(this.loaded.keys());
  }

  note(message: EngineMessage): void {
    if (message.type === 'ready') this.memoryBytes = message.memoryBytes;
    else if (message.type === 'loaded') this.loaded.set(message.key, message.modelBytes);
    else if (message.type === 'released') this.loaded.delete(message.key);
    else if (message.type === 'stepped') this.last = { pictures: message.pictures, stepMs: message.stepMs };
  }

  clear(): void {
    this.loaded.clear();
    this.last = undefined;
  }

  /** @param tasks that it draws now */
  state(tasks: number): EngineState {
    const { pictures, stepMs } = (tasks > 0 && this.last) || { pictures: 0, stepMs: null };
    const loaded = [...this.loaded].map(([key, bytes]) => ({ key, bytes }));
    return { tasks, pictures, stepMs: stepMs && Math.round(stepMs), loaded, memoryBytes: this.memoryBytes };
  }
}
