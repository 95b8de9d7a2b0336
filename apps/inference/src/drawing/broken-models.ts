import type { BrokenModel } from '@app/domain';
import { knownFaults } from '@app/process';
import { Injectable } from '@nestjs/common';
import { keyOf } from './weights-names';

type Installed = Pick<BrokenModel, 'name' | 'hash'>;

/**
 * The installed models that engines of this worker have refused, by the state of their files: a folder that is changed
 * is another model. Each device is a case of its own: what one refuses, another may draw.
 */
@Injectable()
export class BrokenModels {
  private readonly faults = knownFaults<{ model: BrokenModel; device: string }>();

  add(model: BrokenModel, device: string): void {
    this.faults.set(`${keyOf(model)} ${device}`, { model, device });
  }

  refusedOn(model: Installed): string[] {
    return this.all.filter((fault) => keyOf(fault.model) === keyOf(model)).map(({ device }) => device);
  }

  /** Why this model cannot be drawn with on any of these devices; undefined if one may draw it. */
  problemOf(model: Installed, devices: readonly string[]): string | undefined {
    const problems = devices.map((device) => this.faults.peek(`${keyOf(model)} ${device}`)?.model.problem);
    return problems.every((problem) => problem !== undefined) ? problems[0] : undefined;
  }

  list(): BrokenModel[] {
    return [...new Map(this.all.map(({ model }) => [keyOf(model), model])).values()];
  }

  private get all() {
    return [...this.faults.rvalues()].filter((fault) => fault !== undefined);
  }
}
