import { computed } from '@preact/signals';
import type { Finetune } from '../service/client';
import { client, forThisSession, sessionSignal } from '../session/session';
import { titlesOf } from './title';

/** Newest first. */
export const finetunes = sessionSignal<readonly Finetune[]>(() => []);
export const areFinetunesLoaded = sessionSignal(() => false);

export const loadFinetunes = (): Promise<void> =>
  forThisSession(client().finetunes.list(), (found) => {
    finetunes.value = found;
    areFinetunesLoaded.value = true;
  });

/** Whether it has weights to draw with, even if they are stale or its training failed after an upload. */
export const hasWeights = ({ weights }: Finetune): boolean => weights !== null;

/** The Fine-Tunes that have weights. */
export const drawable = computed(() => finetunes.value.filter(hasWeights));

const titles = computed(() => titlesOf(finetunes.value));

/** Unique among the Fine-Tunes. */
export const titleOf = ({ id, name }: Finetune): string => titles.value.get(id) ?? name;

export const finetuneOf = (id: string | undefined): Finetune | undefined =>
  finetunes.value.find((each) => each.id === id);
