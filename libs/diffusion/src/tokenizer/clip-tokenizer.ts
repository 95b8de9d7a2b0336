import { join } from 'node:path';
import { cures, ModelFolderError } from '../errors';
import { type JsonObject, readJsonFile, statFile } from '../weights/folder-files';
import { AddedTokens, wordsWith } from './added-tokens';
import { type BytePairTokenizer, Tokenizer } from './byte-pair-tokenizer';
import {
  beginOfText,
  clipVocabulary,
  endOfText,
  readAddedTokens,
  readVocabulary,
  tokenText,
  type Vocabulary,
} from './vocabulary';

/**
 * Words, single digits and runs of other characters (`CLIPTokenizer`), without the alternatives for the special tokens.
 */
const words = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";
/** `CLIPTokenizer`'s default for a folder that does not specify it; transformers writes 1e30 for "no limit". */
const defaultMaxLength = 77;
const largestMaxLength = 4096;

/** A word that textual inversion teaches, and the number of vectors that it stands for. */
export interface TaughtWord {
  word: string;
  vectors: number;
}

interface OwnPadToken {
  padToken: 'end' | 'zero';
}

interface Special {
  bos: number;
  eos: number;
  pad: number;
  maxLength: number;
  /** The pad token where it is a word like any other, which then becomes it. */
  padWord: Record<string, number>;
}

/**
 * The byte-pair tokenizer of CLIP. The begin and end tokens in a text are split like any other text and never become
 * the token. What becomes one, as in diffusers, is a pad token of its own, such as the `!` of Stable Diffusion 2.x, and
 * the words of textual inversion.
 * Source: `CLIPTokenizer` of transformers.
 */
export class ClipTokenizer {
  readonly bos: number;
  readonly eos: number;
  /** Length of an encoded text, special tokens included. */
  readonly maxLength: number;
  private readonly addedTokens: AddedTokens | undefined;

  private constructor(
    private readonly bytePairs: BytePairTokenizer,
    private readonly special: Special,
    /** Words of textual inversion. */
    private readonly added: Readonly<Record<string, number>>,
    /** One more than the largest id. */
    readonly vocabularySize: number,
  ) {
    ({ bos: this.bos, eos: this.eos, maxLength: this.maxLength } = special);
    const all = { ...special.padWord, ...added };
    this.addedTokens = Object.keys(all).length > 0 ? new AddedTokens(all) : undefined;
  }

  /**
   * Reads a folder with `vocab.json` and `merges.txt` or with `tokenizer.json`; `added_tokens.json` has the words of
   * textual inversion.
   * @throws ModelFolderError if the folder holds no usable CLIP vocabulary
   */
  static async load(folder: string): Promise<ClipTokenizer> {
    const vocabulary = await readVocabulary(folder);
    const special = specialTokens(folder, vocabulary, await readConfig(folder));
    const added = await readAddedTokens(folder, vocabulary);
    const ids = [...Object.values(vocabulary.vocab), ...Object.values(added)];
    const size = ids.reduce((largest, value) => Math.max(largest, value), 0) + 1;
    return new ClipTokenizer(bytePairTokenizer(vocabulary), special, added, size);
  }

  /**
   * CLIP's own vocabulary, for a model that comes without a tokenizer.
   * @param padToken the end token, as the text encoder of Stable Diffusion 1.x and the first of XL know it, or that of
   * id 0, which is `!`, as that of 2.x and the second of XL do
   */
  static async clip({ padToken }: OwnPadToken): Promise<ClipTokenizer> {
    const vocabulary = await clipVocabulary();
    const special = specialTokens('', vocabulary, { pad_token: padToken === 'zero' ? '!' : endOfText });
    return new ClipTokenizer(bytePairTokenizer(vocabulary), special, {}, Object.keys(vocabulary.vocab).length);
  }

  /** Whether there are words with more tokens than bytes. */
  get hasAddedWords(): boolean {
    return Object.keys(this.added).length > 0;
  }

  /**
   * This tokenizer with more words. The ids of their vectors follow one another in the words' order. Of a word that is
   * given twice, the last one counts; an empty word is never met.
   * @param first the id of the first vector, by default the one after the vocabulary
   */
  withWords(words: readonly TaughtWord[], first = this.vocabularySize): ClipTokenizer {
    let [added, size] = [this.added, first];
    for (const { word, vectors } of words) {
      if (word !== '') added = wordsWith(added, word, vectors, size);
      size += vectors;
    }
    return new ClipTokenizer(this.bytePairs, this.special, added, size);
  }

  /** Ids of the text alone, without special tokens and of any length. */
  tokenize(text: string): number[] {
    const encode = (part: string) => this.bytePairs.encode(part, { add_special_tokens: false }).ids;
    return this.addedTokens ? this.addedTokens.tokenize(text, encode) : encode(text);
  }

  /** Puts at most `maxLength - 2` ids between the begin and end tokens and pads the row. */
  frame(ids: readonly number[]): number[] {
    const padding = new Array<number>(this.maxLength - 2 - ids.length).fill(this.special.pad);
    return [this.bos, ...ids, this.eos, ...padding];
  }
}

/**
 * The tokenizer of a model: that of its own folder, or `ClipTokenizer.clip` where there is no such folder.
 * @throws ModelFolderError if the folder holds no usable CLIP vocabulary
 */
export async function tokenizerOf(folder: string, own: OwnPadToken): Promise<ClipTokenizer> {
  return (await statFile(folder)) ? ClipTokenizer.load(folder) : ClipTokenizer.clip(own);
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

/**
 * Special tokens of a folder. `special_tokens_map.json` counts more than `tokenizer_config.json`, unless
 * the latter lists the added tokens: then transformers does not read the former. In Stable Diffusion 2.x's folders only
 * the former names the pad token that the model was trained with.
 */
async function readConfig(folder: string): Promise<JsonObject> {
  const config = (await readJsonFile(join(folder, 'tokenizer_config.json'), { optional: true })) ?? {};
  if (config.added_tokens_decoder !== undefined) return config;
  return { ...config, ...(await readJsonFile(join(folder, 'special_tokens_map.json'), { optional: true })) };
}

/** @throws ModelFolderError if the vocabulary lacks a special token */
function specialTokens(folder: string, { vocab }: Vocabulary, config: JsonObject): Special {
  const idOf = (token: string): number => {
    if (Object.hasOwn(vocab, token)) return vocab[token];
    throw new ModelFolderError(folder, `has no token ${token} in its vocabulary`, cures.oneModel);
  };
  const bos = idOf(tokenText(config.bos_token) ?? beginOfText);
  const eos = idOf(tokenText(config.eos_token) ?? endOfText);
  const padToken = tokenText(config.pad_token) ?? endOfText;
  const pad = idOf(padToken);
  const { model_max_length: length } = config;
  const hasLength = typeof length === 'number' && length >= 3 && length <= largestMaxLength;
  const maxLength = hasLength ? Math.trunc(length) : defaultMaxLength;
  return { bos, eos, pad, maxLength, padWord: pad === bos || pad === eos ? {} : { [padToken]: pad } };
}
