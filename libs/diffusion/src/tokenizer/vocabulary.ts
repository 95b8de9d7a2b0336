import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { cures, ModelFolderError } from '../errors';
import { type JsonObject, readJsonFile, readOptionalFile } from '../weights/folder-files';

export const beginOfText = '<|startoftext|>';
export const endOfText = '<|endoftext|>';
/** How many tokens may lack a merge, as a part of those that need one: a word that was added by hand may. */
const toleratedPart = 0.01;

/** A byte-pair vocabulary: token to id, and merges in order of rank. */
export interface Vocabulary {
  vocab: Record<string, number>;
  merges: [string, string][];
}

/** The build copies it to the same place below `dist`. */
const clipMerges = join(__dirname, '../../assets/clip-tokenizer/merges.txt.gz');

/**
 * CLIP's own vocabulary of 49,408 tokens, which follows from its merges: bytes, bytes that end a word, what each merge
 * makes, and the two special tokens. Source: `SimpleTokenizer` of openai/CLIP.
 */
export async function clipVocabulary(): Promise<Vocabulary> {
  const merges = mergesOf(clipMerges, (await promisify(gunzip)(await readFile(clipMerges))).toString());
  const bytes = byteSymbols();
  const merged = merges.map(([first, second]) => first + second);
  const tokens = [...bytes, ...bytes.map((symbol) => `${symbol}</w>`), ...merged, beginOfText, endOfText];
  return { vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges };
}

const qwen3Folder = join(__dirname, '../../assets/qwen3-tokenizer');

/**
 * The files of Qwen3's tokenizer, as its repository has them, of the copy that comes with the library: without its
 * vocabulary of 151,643 tokens, which follows from its merges.
 */
export async function qwen3TokenizerFiles(): Promise<Record<string, JsonObject>> {
  const mergesFile = join(qwen3Folder, 'merges.txt.gz');
  const merges = mergesOf(mergesFile, (await promisify(gunzip)(await readFile(mergesFile))).toString());
  const tokens = [...byteSymbols(), ...merges.map(([first, second]) => first + second)];
  const whole = await readJsonFile(join(qwen3Folder, 'tokenizer.json'));
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  return {
    'tokenizer.json': { ...whole, model: { ...(whole.model as JsonObject), vocab, merges } },
    'tokenizer_config.json': await readJsonFile(join(qwen3Folder, 'tokenizer_config.json')),
  };
}

/** The characters that stand for bytes: printable ones stand for themselves and come first, then one for each other. */
function byteSymbols(): string[] {
  const all = Array.from({ length: 256 }, (_, byte) => byte);
  const printed = all.filter((byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad));
  const others = all.slice(printed.length).map((_, i) => 256 + i);
  return [...printed, ...others].map((code) => String.fromCodePoint(code));
}

/**
 * The vocabulary of a folder: `vocab.json` and `merges.txt` where both are there, as diffusers reads them; else
 * `tokenizer.json`.
 * @throws ModelFolderError if there is none, or it is damaged
 */
export async function readVocabulary(folder: string): Promise<Vocabulary> {
  const mergesFile = join(folder, 'merges.txt');
  const vocab = await readJsonFile(join(folder, 'vocab.json'), { optional: true });
  const text = await readOptionalFile(mergesFile);
  if (vocab && text !== undefined) {
    const checked = checkVocab(join(folder, 'vocab.json'), vocab);
    const merges = mergesOf(mergesFile, text);
    for (const merge of merges) checkFit(mergesFile, merge, checked);
    return checkComplete(mergesFile, { vocab: checked, merges });
  }
  const file = join(folder, 'tokenizer.json');
  const whole = await readJsonFile(file, { optional: true });
  if (!whole)
    throw new ModelFolderError(vocab ? mergesFile : join(folder, 'vocab.json'), 'is missing', cures.installAgain);
  return vocabularyOf(file, whole);
}

/**
 * The vocabulary of the content of a `tokenizer.json`.
 * @throws ModelFolderError if there is none, or it is damaged
 */
export function vocabularyOf(file: string, whole: JsonObject): Vocabulary {
  const model = (whole.model ?? {}) as JsonObject;
  if (!Array.isArray(model.merges)) throw new ModelFolderError(file, 'holds no byte-pair merges', cures.installAgain);
  return checkComplete(file, {
    vocab: checkVocab(file, (model.vocab ?? {}) as JsonObject),
    merges: model.merges.map((merge) => checkMerge(file, merge)),
  });
}

/** Added words of the vocabulary, without the special tokens, which some exports list here under the same id. */
export async function readAddedTokens(folder: string, { vocab }: Vocabulary): Promise<Record<string, number>> {
  const file = join(folder, 'added_tokens.json');
  const added = (await readJsonFile(file, { optional: true })) ?? {};
  const own = Object.entries(added).filter(([token, id]) => token !== '' && vocab[token] !== id);
  return own.length === 0 ? {} : checkVocab(file, Object.fromEntries(own));
}

function checkVocab(file: string, vocab: JsonObject): Record<string, number> {
  const ids = Object.values(vocab);
  if (ids.length === 0 || !ids.every((id) => Number.isInteger(id) && (id as number) >= 0))
    throw new ModelFolderError(file, 'is not a vocabulary of tokens and ids', cures.installAgain);
  // A language model has 150,000 tokens: the two that share an id are looked for only where there are two.
  if (new Set(ids).size < ids.length) refuseSharedIds(file, vocab);
  return vocab as Record<string, number>;
}

/** The text encoder would take one word for another. */
function refuseSharedIds(file: string, vocab: JsonObject): void {
  const tokens = new Map<unknown, string>();
  for (const [token, id] of Object.entries(vocab)) {
    const other = tokens.get(id);
    if (other !== undefined) {
      const both = [other, token].map((each) => JSON.stringify(each).slice(0, 80)).join(' and ');
      throw new ModelFolderError(file, `gives one id, ${String(id)}, to several tokens: ${both}`, cures.installAgain);
    }
    tokens.set(id, token);
  }
}

function mergesOf(file: string, text: string): [string, string][] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '' && !line.startsWith('#version'));
  return lines.map((line) => checkMerge(file, line));
}

function checkMerge(file: string, merge: unknown): [string, string] {
  const pair: unknown = typeof merge === 'string' ? merge.split(' ') : merge;
  if (Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string'))
    return pair as [string, string];
  throw new ModelFolderError(
    file,
    `has a merge that is not a pair of tokens: ${JSON.stringify(merge)?.slice(0, 80)}`,
    cures.installAgain,
  );
}

/** Merges of another vocabulary would give tokens without an id, or none of the words that the text encoder knows. */
function checkFit(file: string, [first, second]: [string, string], vocab: Record<string, number>): void {
  if (Object.hasOwn(vocab, first + second)) return;
  throw new ModelFolderError(
    file,
    `does not fit vocab.json, which has no token ${JSON.stringify(first + second)}`,
    cures.oneModel,
  );
}

/** With too few merges words fall apart into symbols, and the picture is of something else. */
function checkComplete(file: string, vocabulary: Vocabulary): Vocabulary {
  const { vocab, merges } = vocabulary;
  // Every token of several symbols comes of a merge of its own, except the special ones.
  const merged = Object.keys(vocab).filter((token) => !/^(<.*>|.(<\/w>)?)$/su.test(token)).length;
  if (merged - merges.length <= merged * toleratedPart) return vocabulary;
  throw new ModelFolderError(
    file,
    `is cut short: it has ${merges.length} merges, and the vocabulary needs ${merged}`,
    cures.installAgain,
  );
}

/** A token is written as text or as an object with `content`. */
export function tokenText(token: unknown): string | undefined {
  const text = token !== null && typeof token === 'object' ? (token as JsonObject).content : token;
  return typeof text === 'string' ? text : undefined;
}
