import { weightsLabel, type WeightsOfTask } from '@app/tasks';
import { LruMap } from '@app/process';
import { Injectable } from '@nestjs/common';

/** Names that are remembered; far more than are loaded at once. */
const maxNames = 1_000;

/**
 * Remembers which key an engine has for a task's model and Fine-Tune at its scale, so that a claim can prefer what is
 * loaded.
 */
@Injectable()
export class KnownWeights {
  private readonly keys = new LruMap<string>(maxNames);

  remember(task: WeightsOfTask, key: string): void {
    this.keys.set(weightsLabel(task), key);
  }

  /** The models and Fine-Tunes that are drawn with these keys, as a claim names them. */
  drawnWith(keys: ReadonlySet<string>): string[] {
    return this.keys
      .list()
      .filter(([, key]) => keys.has(key))
      .map(([name]) => name);
  }
}
