import { UnprocessableError } from '@app/domain';
import type { InstalledModel } from '@app/model-store';

/**
 * @param scheduler that the request names
 * @param pointer of the field that can name one, if the body has it
 * @throws UnprocessableError `SchedulerUnsupported` if the model's own scheduler would draw and cannot
 */
export function assertDrawable(model: InstalledModel, scheduler?: string | null, pointer?: string): void {
  if (model.schedulerProblem === undefined || (scheduler ?? model.defaults.scheduler) !== undefined) return;
  throw new UnprocessableError(
    'SchedulerUnsupported',
    `The model "${model.name}" cannot draw with its own scheduler: ${model.schedulerProblem}`,
    pointer === undefined ? undefined : [{ pointer, message: 'is needed for this model' }],
  );
}
