import { readFile } from 'node:fs/promises';
import { misconfiguredExitCode, StartError } from '@app/process';
import { PhraseFinder } from './phrase-finder';

const mostPhrases = 10_000;
const longestPhrase = 200;

/** The file of PROMPT_RULES cannot be used. */
class PromptRulesError extends StartError {
  constructor(file: string, problem: string) {
    super(`PROMPT_RULES is ${file}, ${problem}`, misconfiguredExitCode);
  }
}

/**
 * A text as it is compared: its words in small letters, without accents and invisible characters, with one space before
 * and after each. What is neither a letter nor a digit parts words.
 */
function comparable(text: string): string {
  const plain = text.normalize('NFKD').replace(/[\p{M}\p{Cf}]/gu, '');
  return ` ${plain
    .toLowerCase()
    .split(/[^\p{L}\p{N}]/u)
    .filter(Boolean)
    .join(' ')} `;
}

/**
 * What stands in a comparable text for a word or phrase of a rule: without its `*` at an end, the space there is a part
 * of it.
 */
function patternOf(phrase: string): string {
  const words = comparable(phrase);
  if (words === '  ') return '';
  return words.slice(phrase.startsWith('*') ? 1 : 0, phrase.endsWith('*') ? -1 : undefined);
}

/** Words and phrases that no prompt may have, each with a sentence that says so. */
export class PromptRules {
  private readonly finder: PhraseFinder;

  /** @param rules patterns, none of them empty, and their sentences */
  constructor(private readonly rules: readonly { pattern: string; sentence: string }[]) {
    this.finder = new PhraseFinder(rules.map(({ pattern }) => pattern));
  }

  /** The sentence of the first rule that forbids a text; undefined if none does. In one pass over the text. */
  refusalOf(text: string): string | undefined {
    const found = this.finder.find(comparable(text));
    return found === undefined ? undefined : this.rules[found].sentence;
  }
}

/**
 * Reads the file of PROMPT_RULES: lines `phrase, phrase: sentence`; empty lines and those that begin with # are passed
 * over.
 * @throws StartError that names the line at fault
 */
export async function readPromptRules(file: string): Promise<PromptRules> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new PromptRulesError(file, `which cannot be read (${error.code}).`);
  });
  const rules: { pattern: string; sentence: string }[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const refuse = (why: string): never => {
      throw new PromptRulesError(file, `whose line ${index + 1} ${why}`);
    };
    const colon = line.indexOf(':');
    const sentence = line.slice(colon + 1).trim();
    if (colon < 0 || sentence === '')
      refuse('must be words or phrases, a colon and a sentence: "gun, rifle*: No weapons."');
    for (const phrase of line
      .slice(0, colon)
      .split(',')
      .map((each) => each.trim())) {
      const pattern = patternOf(phrase);
      if (pattern === '' || phrase.length > longestPhrase)
        refuse(`has "${phrase.slice(0, longestPhrase)}" where a word or phrase is needed.`);
      if (phrase.slice(1, -1).includes('*')) refuse(`has a * inside of "${phrase}", which may be at an end alone.`);
      rules.push({ pattern, sentence });
    }
    if (rules.length > mostPhrases) refuse(`is one too many: there may be ${mostPhrases} words and phrases.`);
  }
  return new PromptRules(rules);
}
