import { computed } from '@preact/signals';
import type { Finetune } from '../service/client';
import { client, forThisSession, sessionSignal } from '../session/session';
import { titlesOf } from './title';

/** The Fine-Tunes of the key, newest first. */
export const finetunes = sessionSignal<readonly Finetune[]>(() => []);
export const areFinetunesLoaded = sessionSignal(() => false);

export const loadFinetunes = (): Promise<void> =>
  forThisSession(client().finetunes.list(), (found) => {
    finetunes.value = found;
    areFinetunesLoaded.value = true;
  });

/** Whether it has something of its own to draw with: also while it is stale, or its training failed and others were uploaded. */
export const hasWeights = ({ weights }: Finetune): boolean => weights !== null;

/** The Fine-Tunes that have weights. */
export const drawable = computed(() => finetunes.value.filter(hasWeights));

const titles = computed(() => titlesOf(finetunes.value));

/** Its title, which tells it from the others. */
export const titleOf = ({ id, name }: Finetune): string => titles.value.get(id) ?? name;

export const finetuneOf = (id: string | undefined): Finetune | undefined =>
  finetunes.value.find((each) => each.id === id);
