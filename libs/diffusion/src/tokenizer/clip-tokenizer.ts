import { join } from 'node:path';
import * as tokenizers from '@huggingface/tokenizers';
import { cures, ModelFolderError } from '../errors';
import { type JsonObject, readJsonFile, readOptionalFile } from '../families/model-files';
import { AddedTokens, wordsWith } from './added-tokens';

/**
 * The package's own declarations import one another without extensions, which TypeScript's Node
 * resolution cannot follow.
 */
interface BytePairTokenizer {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
}
const { Tokenizer } = tokenizers as unknown as {
  Tokenizer: new (tokenizer: object, config: object) => BytePairTokenizer;
};

const beginOfText = '<|startoftext|>';
const endOfText = '<|endoftext|>';
/**
 * Words, single digits and runs of other characters (`CLIPTokenizer`), without the alternatives for the special tokens.
 */
const words = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";
/** `CLIPTokenizer`'s default for a folder that does not specify it; transformers writes 1e30 for "no limit". */
const defaultMaxLength = 77;
const largestMaxLength = 4096;
/** How many tokens may lack a merge, as a part of those that need one: a word that was added by hand may. */
const toleratedPart = 0.01;

/** Byte-pair vocabulary of a folder: token to id, and merges in order of rank. */
interface Vocabulary {
  vocab: Record<string, number>;
  merges: [string, string][];
}

/**
 * The byte-pair tokenizer of CLIP, from a folder with `vocab.json` and `merges.txt` or with `tokenizer.json`. A special
 * token in a text is split like any other text and never becomes the token; the words of textual inversion in
 * `added_tokens.json` do become tokens.
 * Source: `CLIPTokenizer` of transformers.
 */
export class ClipTokenizer {
  private readonly addedTokens: AddedTokens | undefined;

  private constructor(
    private readonly tokenizer: BytePairTokenizer,
    private readonly added: Readonly<Record<string, number>>,
    /** Ids of the special tokens. */
    readonly bos: number,
    readonly eos: number,
    readonly pad: number,
    /** Length of an encoded text, special tokens included. */
    readonly maxLength: number,
    /** One more than the largest id. */
    readonly vocabularySize: number,
  ) {
    this.addedTokens = Object.keys(added).length > 0 ? new AddedTokens(added) : undefined;
  }

  /** @throws ModelFolderError if the folder holds no usable CLIP vocabulary */
  static async load(folder: string): Promise<ClipTokenizer> {
    const vocabulary = await readVocabulary(folder);
    const config: JsonObject = {
      ...(await readJsonFile(join(folder, 'special_tokens_map.json'), { optional: true })),
      ...(await readJsonFile(join(folder, 'tokenizer_config.json'), { optional: true })),
    };
    const id = (key: string, fallback: string): number => {
      const token = tokenText(config[key]) ?? fallback;
      const found = Object.hasOwn(vocabulary.vocab, token) ? vocabulary.vocab[token] : undefined;
      if (found === undefined)
        throw new ModelFolderError(folder, `has no token ${token} in its vocabulary`, cures.oneExport);
      return found;
    };
    const { model_max_length: maxLength } = config;
    const added = await readAddedTokens(folder, vocabulary);
    const ids = [...Object.values(vocabulary.vocab), ...Object.values(added)];
    return new ClipTokenizer(
      bytePairTokenizer(vocabulary),
      added,
      id('bos_token', beginOfText),
      id('eos_token', endOfText),
      id('pad_token', endOfText),
      typeof maxLength === 'number' && maxLength >= 3 && maxLength <= largestMaxLength
        ? Math.trunc(maxLength)
        : defaultMaxLength,
      ids.reduce((largest, value) => Math.max(largest, value), 0) + 1,
    );
  }

  /** Whether there are words with more tokens than bytes. */
  get hasAddedWords(): boolean {
    return this.addedTokens !== undefined;
  }

  /** This tokenizer with one more word, which stands for that many vectors, as `mergeTextualInversion` makes it. */
  withWord(word: string, vectors: number): ClipTokenizer {
    const known = wordsWith(this.added, word.toLowerCase(), vectors, this.vocabularySize);
    const { bos, eos, pad, maxLength, vocabularySize } = this;
    return new ClipTokenizer(this.tokenizer, known, bos, eos, pad, maxLength, vocabularySize + vectors);
  }

  /** Ids of the text alone, without special tokens and of any length. */
  tokenize(text: string): number[] {
    const encode = (part: string) => this.tokenizer.encode(part, { add_special_tokens: false }).ids;
    return this.addedTokens ? this.addedTokens.tokenize(text, encode) : encode(text);
  }

  /** Puts at most `maxLength - 2` ids between the begin and end tokens and pads the row. */
  frame(ids: readonly number[]): number[] {
    const padding = new Array<number>(this.maxLength - 2 - ids.length).fill(this.pad);
    return [this.bos, ...ids, this.eos, ...padding];
  }
}

function bytePairTokenizer({ vocab, merges }: Vocabulary): BytePairTokenizer {
  return new Tokenizer(
    {
      version: '1.0',
      // Without added tokens, no text from a user can match one.
      added_tokens: [],
      normalizer: {
        type: 'Sequence',
        normalizers: [
          { type: 'NFC' },
          { type: 'Replace', pattern: { Regex: '\\s+' }, content: ' ' },
          { type: 'Lowercase' },
        ],
      },
      pre_tokenizer: {
        type: 'Sequence',
        pretokenizers: [
          { type: 'Split', pattern: { Regex: words }, behavior: 'Removed', invert: true },
          { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
        ],
      },
      post_processor: null,
      decoder: null,
      model: { type: 'BPE', unk_token: endOfText, end_of_word_suffix: '</w>', vocab, merges },
    },
    {},
  );
}

/** `vocab.json` and `merges.txt` where both are there, as diffusers reads them; else `tokenizer.json`. */
async function readVocabulary(folder: string): Promise<Vocabulary> {
  const mergesFile = join(folder, 'merges.txt');
  const vocab = await readJsonFile(join(folder, 'vocab.json'), { optional: true });
  const text = await readOptionalFile(mergesFile);
  if (vocab && text !== undefined) {
    const lines = text.split(/\r?\n/).filter((line) => line !== '' && !line.startsWith('#version'));
    const checked = checkVocab(join(folder, 'vocab.json'), vocab);
    const merges = lines.map((line) => checkFit(mergesFile, checkMerge(mergesFile, line), checked));
    return checkComplete(mergesFile, { vocab: checked, merges });
  }
  const file = join(folder, 'tokenizer.json');
  const whole = await readJsonFile(file, { optional: true });
  if (!whole)
    throw new ModelFolderError(vocab ? mergesFile : join(folder, 'vocab.json'), 'is missing', cures.installAgain);
  const model = (whole.model ?? {}) as JsonObject;
  if (!Array.isArray(model.merges)) throw new ModelFolderError(file, 'holds no byte-pair merges', cures.installAgain);
  return checkComplete(file, {
    vocab: checkVocab(file, (model.vocab ?? {}) as JsonObject),
    merges: model.merges.map((merge) => checkMerge(file, merge)),
  });
}

/** Added words of the vocabulary, without the special tokens, which some exports list here under the same id. */
async function readAddedTokens(folder: string, { vocab }: Vocabulary): Promise<Record<string, number>> {
  const file = join(folder, 'added_tokens.json');
  const added = (await readJsonFile(file, { optional: true })) ?? {};
  const own = Object.entries(added).filter(([token, id]) => token !== '' && vocab[token] !== id);
  return own.length === 0 ? {} : checkVocab(file, Object.fromEntries(own));
}

function checkVocab(file: string, vocab: JsonObject): Record<string, number> {
  const ids = Object.values(vocab);
  if (ids.length === 0 || !ids.every((id) => Number.isInteger(id) && (id as number) >= 0))
    throw new ModelFolderError(file, 'is not a vocabulary of tokens and ids', cures.installAgain);
  refuseSharedIds(file, vocab);
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
function checkFit(file: string, [first, second]: [string, string], vocab: Record<string, number>): [string, string] {
  if (Object.hasOwn(vocab, first + second)) return [first, second];
  throw new ModelFolderError(
    file,
    `does not fit vocab.json, which has no token ${JSON.stringify(first + second)}`,
    cures.oneExport,
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
function tokenText(token: unknown): string | undefined {
  const text = token !== null && typeof token === 'object' ? (token as JsonObject).content : token;
  return typeof text === 'string' ? text : undefined;
}
