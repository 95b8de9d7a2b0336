import type { InstalledModel } from '@app/model-store';
import { modelProblem } from './model-problem';

/** An installed model as JSON: named as the API names it, with null for what it has not. */
export function modelFacts(model: InstalledModel) {
  const { fixed, schedulerProblems } = model;
  return {
    name: model.name,
    folder: model.folder,
    hash: model.hash ?? null,
    bytes: model.bytes,
    source: model.source ?? null,
    added_at: model.addedAt,
    requires_cuda: model.requiresCuda,
    fixed,
    defaults: model.defaults,
    scheduler_problems: { own: schedulerProblems.own ?? null, named: schedulerProblems.named },
    problem: modelProblem(model) ?? null,
  };
}
