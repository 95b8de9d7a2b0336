import { limits } from '../common/limits';
import type { FinetuneWords } from '../styles/style-template';
import { includesPhrase, wholeWords } from '../styles/style-template';

/**
 * The text that is drawn for a Prompt: the token is written right before the name wherever it does not stand beside it.
 * Once the text has the length of the longest Prompt the first place has to do.
 */
export function writeToken(text: string, { token, name }: FinetuneWords): string {
  let { length } = text;
  let written = 0;
  return text.replace(wholeWords(`${token} ${name}`, `${name} ${token}`, name), (found) => {
    if (includesPhrase(found, token)) return found;
    if (written > 0 && length + token.length + 1 > limits.promptLength) return found;
    length += token.length + 1;
    written++;
    return `${token} ${found}`;
  });
}
