import type { Finetune } from '../finetunes/finetune';

/** Stands in a Style's template for the Fine-Tune's token and name. Other braces of a template are doubled. */
export const stylePlaceholder = '{finetune}';

/** What of a Fine-Tune is written in a text. */
export type FinetuneWords = Pick<Finetune, 'token' | 'name'>;

/**
 * A Prompt's text as a template for any Fine-Tune: the token with the name beside it, the name alone and the token
 * alone become the place-holder, wherever they stand as whole words in any case.
 */
export function toTemplate(prompt: string, { token, name }: FinetuneWords): string {
  const [first, second] = token.length > name.length ? [token, name] : [name, token];
  const words = wholeWords(`${token} ${name}`, `${name} ${token}`, first, second);
  let template = '';
  let end = 0;
  for (const found of prompt.matchAll(words)) {
    template += escapeBraces(prompt.slice(end, found.index)) + stylePlaceholder;
    end = found.index + found[0].length;
  }
  return template + escapeBraces(prompt.slice(end));
}

/** The template's text with the Fine-Tune's token and name at each place-holder. */
export function applyTemplate(template: string, { token, name }: FinetuneWords): string {
  return template.replace(/\{\{|\}\}|\{finetune\}/g, (mark) =>
    mark === stylePlaceholder ? `${token} ${name}` : mark[0],
  );
}

/** Whether a text has a phrase as whole words, in any case. Scripts that write no spaces between words need no edges. */
export function includesPhrase(text: string, phrase: string): boolean {
  return text.search(wholeWords(phrase)) >= 0;
}

const wordCharacter = String.raw`[\p{L}\p{M}\p{N}_]`;
const unspacedScripts = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

/** Finds any of the phrases, the first of them that fits at a place. Their words may be apart by spaces or hyphens. */
export function wholeWords(...phrases: string[]): RegExp {
  const alternatives = phrases.map((phrase) => {
    const characters = [...phrase];
    const words = phrase
      .trim()
      .split(/\s+/)
      .map(escapePattern)
      .join(String.raw`[\s-]+`);
    return `${edge('<!', characters[0])}${words}${edge('!', characters.at(-1))}`;
  });
  return new RegExp(alternatives.join('|'), 'giu');
}

function edge(lookaround: '<!' | '!', character = ''): string {
  return unspacedScripts.test(character) ? '' : `(?${lookaround}${wordCharacter})`;
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

function escapeBraces(text: string): string {
  return text.replace(/[{}]/g, '$&$&');
}
