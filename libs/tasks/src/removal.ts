import type { ImageTask } from '@app/domain';
import { isTerminated } from '@app/domain';
import type { JobTransaction } from '@app/queue';
import { announce, changeChannel, stopChannel } from './channels';
import { forgetReplies } from './forget-replies';
import { removeTasksStatement } from './statements/remove-tasks';

/** Deletes a task with all its rows; a worker that draws it stops. */
export async function removeOne({ manager }: JobTransaction, taskId: string): Promise<void> {
  await manager.query(removeTasksStatement, [[taskId]]);
  await forgetReplies(manager, [taskId]);
  await announce(manager, [changeChannel, stopChannel], [taskId]);
}

/** Deletes many tasks in a fixed number of statements. @returns the ids of those that a worker ever claimed. */
export async function removeAll({ manager }: JobTransaction, taskIds: readonly string[]): Promise<string[]> {
  const removed: Pick<ImageTask, 'id' | 'attempt' | 'status'>[] = await manager.query(removeTasksStatement, [taskIds]);
  await forgetReplies(manager, taskIds);
  const open = removed.filter(({ status }) => !isTerminated(status));
  await announce(
    manager,
    [changeChannel, stopChannel],
    open.map(({ id }) => id),
  );
  return removed.filter(({ attempt }) => attempt > 0).map(({ id }) => id);
}
