import { texts } from '../texts';

/** What tells a Fine-Tune from others on the page. */
interface Titled {
  id: string;
  name: string;
  title?: string | null;
  created_at: string;
}

/** Its title or its name; of several that are called alike, with the time at which it was made. */
export function titleAmong(finetune: Titled, all: readonly Titled[]): string {
  const title = ownTitleOf(finetune);
  const isOnlyOne = all.every((other) => other.id === finetune.id || ownTitleOf(other) !== title);
  return isOnlyOne ? title : texts.finetunes.madeAt(title, new Date(finetune.created_at).toLocaleString());
}

const ownTitleOf = ({ title, name }: Titled): string => title ?? name;
