import type { BrokenModel } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { KnownFaults } from '../engine/known-faults';

/**
 * The installed models that an engine of this worker has refused, by the state of their files: a folder that is changed is another
 * model.
 */
@Injectable()
export class BrokenModels {
  private readonly faults = new KnownFaults<BrokenModel>();

  add(model: BrokenModel): void {
    this.faults.note(keyOf(model), model);
  }

  /** Why this model cannot be drawn with; undefined if nothing is known against it. */
  problemOf(model: Pick<BrokenModel, 'name' | 'hash'>): string | undefined {
    return this.faults.of(keyOf(model))?.problem;
  }

  list(): BrokenModel[] {
    return this.faults.list();
  }
}

const keyOf = ({ name, hash }: Pick<BrokenModel, 'name' | 'hash'>): string => `${name}@${hash}`;
