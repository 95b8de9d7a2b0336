import type { BrokenModel } from '@app/domain';
import { Injectable } from '@nestjs/common';

/** Then a model is tried again, because a disk or a network may have been at fault. */
const triedAgainMs = 600_000;
/** Far more models than anyone installs; the oldest is forgotten first. */
const most = 100;

/**
 * The installed models that an engine of this worker has refused, by the state of their files: a folder that is changed is another
 * model.
 */
@Injectable()
export class BrokenModels {
  private readonly found = new Map<string, { model: BrokenModel; at: number }>();

  add(model: BrokenModel): void {
    const key = keyOf(model);
    this.found.delete(key);
    this.found.set(key, { model, at: performance.now() });
    if (this.found.size > most) this.found.delete(this.found.keys().next().value!);
  }

  /** Why this model cannot be drawn with; undefined if nothing is known against it. */
  problemOf(model: Pick<BrokenModel, 'name' | 'hash'>): string | undefined {
    this.forget();
    return this.found.get(keyOf(model))?.model.problem;
  }

  list(): BrokenModel[] {
    this.forget();
    return [...this.found.values()].map(({ model }) => model);
  }

  private forget(): void {
    for (const [key, { at }] of this.found) if (performance.now() - at >= triedAgainMs) this.found.delete(key);
  }
}

const keyOf = ({ name, hash }: Pick<BrokenModel, 'name' | 'hash'>): string => `${name}@${hash}`;
