import { signal } from '@preact/signals';
import type { Finetune } from '../service/client';
import { client } from '../session/session';

/** The Fine-Tunes of the key, newest first. */
export const finetunes = signal<readonly Finetune[]>([]);
export const areFinetunesLoaded = signal(false);

export async function loadFinetunes(): Promise<void> {
  finetunes.value = await client().finetunes.list();
  areFinetunesLoaded.value = true;
}

export const titleOf = ({ title, name }: Finetune): string => title ?? name;

export const finetuneOf = (id: string | undefined): Finetune | undefined =>
  finetunes.value.find((each) => each.id === id);
