import { type AuditEntry, usualCaption } from '@app/domain';
import type { NewTask } from './task-intake';
import type { NewTraining } from './trainings';

/** Entries of one refused request, and characters of each text: nobody's storage is charged with them. */
const keptOfRefused = { entries: 10, letters: 2_000 };

/** What the audit trail tells of a task. */
export interface Audited extends Pick<
  NewTask,
  'ownerId' | 'endUser' | 'kind' | 'model' | 'createdAt' | 'prompt' | 'finetunePrompt'
> {
  /** Left out where nothing was made of it. */
  id?: string;
}

/** What the audit trail keeps of accepted requests. */
export function auditOf(
  tasks: readonly Audited[],
  training?: Pick<NewTraining, 'finetune' | 'endUser' | 'training'>,
): Partial<AuditEntry>[] {
  const entries = tasks.map(({ id, ownerId, endUser, kind, model, createdAt, prompt, finetunePrompt }) => ({
    ...{ taskId: id, ownerId, endUser, kind, model, at: createdAt, decision: 'accepted' as const },
    prompt: finetunePrompt?.prompt ?? prompt,
  }));
  if (!training) return entries;
  const { id: taskId, ownerId, model, createdAt: at } = training.finetune;
  const { captions, imagesUrl } = training.training;
  const prompt = captions?.join('\n') ?? (imagesUrl.length > 0 ? usualCaption(training.finetune) : null);
  return [
    { taskId, ownerId, endUser: training.endUser, kind: 'training', model, at, prompt, decision: 'accepted' },
    ...entries,
  ];
}

/** The same of a request that is refused: the first of them. */
export const refusedEntries = (entries: readonly Partial<AuditEntry>[], reason: string): Partial<AuditEntry>[] =>
  entries.slice(0, keptOfRefused.entries).map((entry) => ({
    ...entry,
    taskId: null,
    prompt: entry.prompt?.slice(0, keptOfRefused.letters) ?? null,
    decision: 'refused',
    reason,
  }));
