import { problemOfSize } from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import { problemOfOwnScheduler } from '@app/model-store';

/** What `GET /v1/models` shows as `problem`, as far as it can be told without the workers. */
export function modelProblem(model: InstalledModel): string | undefined {
  return model.problem ?? problemOfSize(model.fixed) ?? problemOfOwnScheduler(model);
}
