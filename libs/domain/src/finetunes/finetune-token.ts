import { limits } from '../common/limits';
import { findPhrases, Phrase } from '../styles/phrase';
import type { FinetuneWords } from '../styles/style-template';

/**
 * The text that is drawn for a Prompt: the token is inserted before each occurrence of the name that has no token
 * beside it. Once the text has a Prompt's longest length, only the first occurrence gets it.
 */
export function writeToken(text: string, { token, name }: FinetuneWords): string {
  const phrases = [`${token} ${name}`, `${name} ${token}`, name].map((phrase) => new Phrase(phrase));
  if (new Phrase(token).isIn(name)) return text;
  let { length } = text;
  let drawn = '';
  let rest = 0;
  for (const { start, index } of findPhrases(text, phrases)) {
    const isNameAlone = index === 2;
    if (!isNameAlone || (drawn !== '' && length + token.length + 1 > limits.promptLength)) continue;
    drawn += `${text.slice(rest, start)}${token} `;
    length += token.length + 1;
    rest = start;
  }
  return drawn + text.slice(rest);
}

/** The caption of a picture for which none was given, and what samples of a training show. */
export const usualCaption = ({ token, name }: FinetuneWords): string => `a photo of ${token} ${name}`;
