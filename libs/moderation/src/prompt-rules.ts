import { readFile } from 'node:fs/promises';
import { misconfiguredExitCode, StartError } from '@app/process';
import { PhraseFinder } from './phrase-finder';

const mostPhrases = 10_000;
const longestPhrase = 200;

/** Lines that cannot be read, of which an operator is told. */
const mostTold = 20;

/** The file of PROMPT_RULES cannot be used. */
class PromptRulesError extends StartError {
  constructor(file: string, problem: string) {
    super(`PROMPT_RULES is ${file}, ${problem}`, misconfiguredExitCode);
  }
}

/** What is not seen, control characters among it; a white space parts words. */
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}]|(?![\s\x85])\p{Cc}/gu;
/** Elsewhere than in these scripts a mark makes another letter: か and が, क and कि, и and й. */
const accented = /([\p{Script=Latin}\p{Script=Greek}])\p{M}+/gu;
/** Marks that make no letter of their own, such as the vowel signs of Arabic and Hebrew, which are written or not. */
const added = /(?=\p{M})[\p{Script=Inherited}\p{Script=Hebrew}]/gu;
/** The number of a weighted part, as in `(red:1.2)`. */
const weight = /:\s*[-+]?[\d.]+\s*\)/g;
const bracket = /[()[\]]/g;
/** In scripts that part no words: a space between two of their letters says nothing. */
const unparted =
  '[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}ー\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}]';
const spaceWithin = new RegExp(`(?<=${unparted}) (?=${unparted})`, 'gu');
const [unpartedFirst, unpartedLast] = [new RegExp(`^${unparted}`, 'u'), new RegExp(`${unparted}$`, 'u')];

/**
 * A text as it is compared: its words in small letters, without accents, weights and what is not seen, with one space
 * before and after each. What is neither a letter with its marks nor a digit parts words.
 */
function comparable(text: string): string {
  const decomposed = text.normalize('NFKD').replace(unseen, '').replace(accented, '$1');
  const plain = decomposed.normalize('NFKC').replace(added, '');
  // By way of capitals, so that ß is ss; a sigma has another form at the end of a word.
  const small = plain.replace(weight, ')').toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ');
  return ` ${small
    .split(/[^\p{L}\p{M}\p{N}]/u)
    .filter(Boolean)
    .join(' ')
    .replace(spaceWithin, '')} `;
}

/**
 * What stands in a comparable text for a word or phrase of a rule: without its `*` at an end, the space there is a part
 * of it. No word ends beside a letter of a script that parts none.
 */
function patternOf(phrase: string): string {
  const words = comparable(phrase).trim();
  const first = phrase.startsWith('*') || unpartedFirst.test(words) ? '' : ' ';
  return first + words + (phrase.endsWith('*') || unpartedLast.test(words) ? '' : ' ');
}

/** Why a word or phrase of a rule cannot be used; undefined if it can. */
function problemOfPhrase(phrase: string): string | undefined {
  const bare = phrase.replace(/^\*|\*$/g, '');
  const words = comparable(bare).trim();
  if (words === '' || phrase.length > longestPhrase)
    return `has "${phrase.slice(0, longestPhrase)}" where a word or phrase is needed.`;
  if (bare.includes('*')) return `has a * inside of "${phrase}", which may be at an end alone.`;
  if (/^[^\p{L}\p{M}\p{N}]|[^\p{L}\p{M}\p{N}]$/u.test(bare))
    return `has "${phrase}", of which only letters and digits are compared: write "${words}", if that is what you mean.`;
  return undefined;
}

/** Words and phrases that no prompt may have, each with a sentence that says so. */
export class PromptRules {
  private readonly finder: PhraseFinder;

  /** @param rules patterns, none of them empty, and their sentences */
  constructor(private readonly rules: readonly Rule[]) {
    this.finder = new PhraseFinder(rules.map(({ pattern }) => pattern));
  }

  /** The sentence of the first rule that forbids a text; undefined if none does. In two passes over the text. */
  refusalOf(text: string): string | undefined {
    // Brackets part words, but not where they weight a part of one: `g()un` is drawn as `gun`.
    const whole = text.replace(weight, ')').replace(bracket, '');
    const forms = [...new Set([text, whole])].map(comparable);
    const found = forms.map((form) => this.finder.find(form)).find((rule) => rule !== undefined);
    return found === undefined ? undefined : this.rules[found].sentence;
  }
}

interface Rule {
  pattern: string;
  sentence: string;
}

/** The rules of a line, or why it cannot be used. */
function readLine(line: string): Rule[] | string {
  const colon = line.indexOf(':');
  const sentence = line.slice(colon + 1).trim();
  if (colon < 0 || sentence === '')
    return 'must be words or phrases, a colon and a sentence: "gun, rifle*: No weapons."';
  const phrases = line
    .slice(0, colon)
    .split(/[,、，]/)
    .map((each) => each.trim());
  const problem = phrases.map(problemOfPhrase).find(Boolean);
  return problem ?? phrases.map((phrase) => ({ pattern: patternOf(phrase), sentence }));
}

/**
 * Reads the file of PROMPT_RULES: lines `phrase, phrase: sentence`; empty lines and those that begin with # are passed
 * over.
 * @throws StartError that names the lines at fault
 */
export async function readPromptRules(file: string): Promise<PromptRules> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new PromptRulesError(file, `which cannot be read (${error.code}).`);
  });
  const [rules, problems]: [Rule[], string[]] = [[], []];
  // Editors of Windows begin a file with a mark.
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const read = readLine(line);
    if (typeof read === 'string') problems.push(`Line ${index + 1} ${read}`);
    else rules.push(...read);
  }
  if (problems.length > mostTold) problems.splice(mostTold, Infinity, `There are ${problems.length - mostTold} more.`);
  if (problems.length > 0)
    throw new PromptRulesError(file, ['and has lines that cannot be used:', ...problems].join('\n'));
  if (rules.length > mostPhrases)
    throw new PromptRulesError(file, `which has ${rules.length} words and phrases; there may be ${mostPhrases}.`);
  return new PromptRules(rules);
}
