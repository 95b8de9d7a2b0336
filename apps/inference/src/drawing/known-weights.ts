import { weightsLabel } from '@app/image-tasks';
import type { ImageTask } from '@app/domain';
import { Injectable } from '@nestjs/common';

/** Names that are remembered; far more than are loaded at once. */
const maxNames = 1_000;

/** Remembers which key an engine has for a task's model and Fine-Tune, so that a claim can prefer what is loaded. */
@Injectable()
export class KnownWeights {
  /** Those that were drawn last are at the end, because a map keeps insertion order. */
  private readonly keys = new Map<string, string>();

  remember({ model, finetuneId }: Pick<ImageTask, 'model' | 'finetuneId'>, key: string): void {
    const name = weightsLabel(model, finetuneId);
    this.keys.delete(name);
    this.keys.set(name, key);
    if (this.keys.size > maxNames) this.keys.delete(this.keys.keys().next().value!);
  }

  /** The models and Fine-Tunes that are drawn with these keys, as a claim names them. */
  drawnWith(keys: ReadonlySet<string>): string[] {
    return [...this.keys].filter(([, key]) => keys.has(key)).map(([name]) => name);
  }
}
