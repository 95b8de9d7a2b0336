import type { FinetuneWords } from '../styles/style-template';
import { includesPhrase, wholeWords } from '../styles/style-template';

/** The text that is drawn for a Prompt: the token is written right before the name wherever it does not stand beside it. */
export function writeToken(text: string, { token, name }: FinetuneWords): string {
  return text.replace(wholeWords(`${token} ${name}`, `${name} ${token}`, name), (found) =>
    includesPhrase(found, token) ? found : `${token} ${found}`,
  );
}
