import type { BrokenModel } from '@app/domain';
import { knownFaults } from '@app/process';
import { Injectable } from '@nestjs/common';

/**
 * The installed models that engines of this worker have refused, by `modelKey`: a folder that is changed is another
 * model. Each device is a case of its own: what one refuses, another may draw.
 */
@Injectable()
export class BrokenModels {
  private readonly faults = knownFaults<{ model: BrokenModel; device: string }>();

  add(model: BrokenModel, device: string): void {
    this.faults.set(`${model.key} ${device}`, { model, device });
  }

  refusedOn(key: string): string[] {
    return this.all.filter(({ model }) => model.key === key).map(({ device }) => device);
  }

  /** Why this model cannot be drawn with on any of these devices; undefined if one may draw it. */
  problemOf(key: string, devices: readonly string[]): string | undefined {
    const problems = devices.map((device) => this.faults.peek(`${key} ${device}`)?.model.problem);
    return problems.every((problem) => problem !== undefined) ? problems[0] : undefined;
  }

  list(): BrokenModel[] {
    return [...new Map(this.all.map(({ model }) => [model.key, model])).values()];
  }

  private get all() {
    return [...this.faults.rvalues()].filter((fault) => fault !== undefined);
  }
}
