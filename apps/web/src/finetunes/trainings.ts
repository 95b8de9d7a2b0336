import { effect } from '@preact/signals';
import { isReachable } from '../service/reach';
import type { Finetune } from '../service/client';
import { client, session, sessionSignal } from '../session/session';
import { finetunes, loadFinetunes } from './finetunes';
import { type TrainingCourse, withStep } from './progress';

const reconnectMs = 2_000;

/** Of open trainings, by id. */
export const trainings = sessionSignal<ReadonlyMap<string, TrainingCourse>>(() => new Map());

export const isOfTraining = ({ status }: Pick<Finetune, 'status'>): boolean =>
  status === 'queued' || status === 'training';

/** Follows the training that ends next by its events: a browser opens few connections, and pictures need some. */
export function followTraining(): () => void {
  let followed: { id: string; controller: AbortController } | undefined;
  const stop = effect(() => {
    const isOn = session.value !== undefined && isReachable.value;
    const open = isOn ? finetunes.value.filter(isOfTraining) : [];
    const next = open.find(({ status }) => status === 'training') ?? open.at(-1);
    if (next?.id === followed?.id) return;
    followed?.controller.abort();
    followed = next && { id: next.id, controller: new AbortController() };
    if (followed) void follow(followed.id, followed.controller.signal);
  });
  return () => {
    stop();
    followed?.controller.abort();
  };
}

async function follow(id: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const told of client().finetunes.events(id, { signal })) {
        if (told.event === 'queued') note(id, { ...empty, ...trainings.value.get(id), position: told.data.position });
        if (told.event === 'started') {
          note(id, { ...empty, ...trainings.value.get(id), ...told.data });
          void loadFinetunes().catch(() => undefined);
        }
        if (told.event === 'progress') note(id, withStep(trainings.value.get(id), told.data, performance.now()));
      }
      // It has ended; the list has the result.
      return await loadFinetunes();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, reconnectMs));
    }
  }
}

const empty: TrainingCourse = { step: 0, total: 1, losses: [], samples: [], marks: [] };

function note(id: string, progress: TrainingCourse): void {
  trainings.value = new Map(trainings.value).set(id, progress);
}
