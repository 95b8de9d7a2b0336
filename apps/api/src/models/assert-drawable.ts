import { UnprocessableError } from '@app/domain';
import { type InstalledModel, problemOfKind, workingSchedulers } from '@app/model-store';

/**
 * @param scheduler what a request says of it; absent where requests have no such field
 * @throws UnprocessableError `ModelNeedsPicture` or `SchedulerUnsupported`, with what the model takes
 */
export function assertDrawable(model: InstalledModel, scheduler?: { name: string | undefined }): void {
  const problemOfModel = problemOfKind(model);
  if (problemOfModel !== undefined)
    throw new UnprocessableError('ModelNeedsPicture', `The model "${model.name}" cannot draw this. ${problemOfModel}`);
  const { own, named } = model.schedulerProblems;
  const name = (scheduler?.name ?? model.defaults.scheduler) as keyof typeof named | undefined;
  const problem = name === undefined ? own : named[name];
  if (problem === undefined) return;
  const which = name === undefined ? 'its own scheduler' : `the scheduler ${name}`;
  const working = workingSchedulers(model);
  const advice = scheduler
    ? `Name ${working}.`
    : `Prompts name none: set "scheduler" in its darkroom.json to ${working}.`;
  const message = name === undefined ? 'is needed for this model' : 'cannot be used with this model';
  throw new UnprocessableError(
    'SchedulerUnsupported',
    `The model "${model.name}" cannot draw with ${which}: ${problem} ${advice}`,
    scheduler && [{ pointer: '/scheduler', message }],
  );
}
