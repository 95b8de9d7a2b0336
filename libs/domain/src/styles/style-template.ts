import type { Finetune } from '../finetunes/finetune';
import { characterCount } from '../fields/text-rules';
import { findPhrases, Phrase } from './phrase';

/** Placeholder in a Style's template for the Fine-Tune's token and name. Other braces of a template are doubled. */
export const stylePlaceholder = '{finetune}';

/** The words of a Fine-Tune in a text. */
export type FinetuneWords = Pick<Finetune, 'token' | 'name'>;

/**
 * Turns a Prompt's text into a template for any Fine-Tune: the placeholder replaces each occurrence, as whole words in
 * any case, of the token with the name beside it, the name alone, or the token alone.
 */
export function toTemplate(prompt: string, { token, name }: FinetuneWords): string {
  const [first, second] = token.length > name.length ? [token, name] : [name, token];
  const phrases = [`${token} ${name}`, `${name} ${token}`, first, second].map((phrase) => new Phrase(phrase));
  let template = '';
  let rest = 0;
  for (const { start, end } of findPhrases(prompt, phrases)) {
    template += escapeBraces(prompt.slice(rest, start)) + stylePlaceholder;
    rest = end;
  }
  return template + escapeBraces(prompt.slice(rest));
}

/**
 * The template's text with the Fine-Tune's token and name at each placeholder.
 * @param maxLength in characters; a longer result is undefined: many placeholders may each become a long name.
 */
export function applyTemplate(template: string, words: FinetuneWords): string;
export function applyTemplate(template: string, words: FinetuneWords, maxLength: number): string | undefined;
export function applyTemplate(template: string, { token, name }: FinetuneWords, maxLength = Infinity) {
  const written = `${token} ${name}`;
  let text = '';
  let rest = 0;
  // A character is at most two UTF-16 units.
  for (const { 0: mark, index } of template.matchAll(/\{\{|\}\}|\{finetune\}/g)) {
    text += template.slice(rest, index) + (mark === stylePlaceholder ? written : mark[0]);
    if (text.length > 2 * maxLength) return undefined;
    rest = index + mark.length;
  }
  text += template.slice(rest);
  return characterCount(text) > maxLength ? undefined : text;
}

function escapeBraces(text: string): string {
  return text.replace(/[{}]/g, '$&$&');
}
