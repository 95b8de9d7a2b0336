import type { Finetune } from '../service/client';
import { client } from '../session/session';
import { forThisSession, sessionSignal } from '../session/session-signal';
import { titleAmong } from './title';

/** The Fine-Tunes of the key, newest first. */
export const finetunes = sessionSignal<readonly Finetune[]>(() => []);
export const areFinetunesLoaded = sessionSignal(() => false);

export const loadFinetunes = (): Promise<void> =>
  forThisSession(client().finetunes.list(), (found) => {
    finetunes.value = found;
    areFinetunesLoaded.value = true;
  });

export const titleOf = (finetune: Finetune): string => titleAmong(finetune, finetunes.value);

export const finetuneOf = (id: string | undefined): Finetune | undefined =>
  finetunes.value.find((each) => each.id === id);
