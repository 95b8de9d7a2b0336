import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { cures, ModelFolderError } from '../errors';
import { type JsonObject, parseJsonObject, readTextFile } from '../weights/folder-files';
import { type BytePairTokenizer, Tokenizer } from './byte-pair-tokenizer';
import { endOfText, tokenText, vocabularyOf } from './vocabulary';

/** In use, by the content of their files. One takes 100 MB and a second to make, and most models have Qwen3's. */
const inUse = new Map<string, WeakRef<LanguageModelTokenizer>>();

/**
 * The byte-pair tokenizer of a language model, as the folder's own `tokenizer.json` describes it. A special token that
 * is written out in a text becomes that token, as in transformers.
 * Source: `Qwen2Tokenizer` of transformers.
 */
export class LanguageModelTokenizer {
  private constructor(
    private readonly bytePairs: BytePairTokenizer,
    private readonly pad: number,
    /** One more than the largest id. */
    readonly vocabularySize: number,
  ) {}

  /**
   * Reads `tokenizer.json` and `tokenizer_config.json`. Folders with the same files share one tokenizer.
   * @param special tokens that it must know beside the one that pads
   * @throws ModelFolderError if they are missing or damaged, or describe another tokenizer
   */
  static async load(folder: string, special: readonly string[]): Promise<LanguageModelTokenizer> {
    const files = ['tokenizer.json', 'tokenizer_config.json'].map((name) => join(folder, name));
    const hash = createHash('sha256').update(special.join());
    const texts: string[] = [];
    for (const file of files) texts.push(await readTextFile(file));
    texts.forEach((text) => hash.update(text));
    const key = hash.digest('hex');
    const known = inUse.get(key)?.deref();
    if (known) return known;
    const made = LanguageModelTokenizer.make(files, texts, special);
    inUse.set(key, new WeakRef(made));
    return made;
  }

  private static make(files: string[], texts: string[], special: readonly string[]): LanguageModelTokenizer {
    const [file] = files;
    const [whole, config] = texts.map((text, i) => parseJsonObject(files[i], text));
    const { vocab, merges } = vocabularyOf(file, whole);
    const added = addedTokensOf(file, whole);
    const padToken = tokenText(config.pad_token) ?? endOfText;
    for (const token of [...special, padToken])
      if (!added.has(token)) throw new ModelFolderError(file, `has no special token ${token}`, cures.oneModel);
    const size = [...Object.values(vocab), ...added.values()].reduce((most, id) => Math.max(most, id + 1), 0);
    const model = { ...(whole.model as JsonObject), vocab, merges };
    try {
      return new LanguageModelTokenizer(new Tokenizer({ ...whole, model }, config), added.get(padToken)!, size);
    } catch (error) {
      throw new ModelFolderError(file, `cannot be used (${(error as Error).message})`, cures.installAgain);
    }
  }

  /** Ids of a text, which may be of any length; its work is linear in the length. */
  tokenize(text: string): number[] {
    return this.bytePairs.encode(text, { add_special_tokens: false }).ids;
  }

  /** The ids, padded on the right. */
  padded(ids: readonly number[], length: number): number[] {
    return [...ids, ...new Array<number>(length - ids.length).fill(this.pad)];
  }
}

/** The added tokens of a `tokenizer.json` and their ids. */
function addedTokensOf(file: string, { added_tokens: tokens }: JsonObject): Map<string, number> {
  const isToken = (token: unknown): token is { content: string; id: number } =>
    tokenText(token) !== undefined && Number.isSafeInteger((token as JsonObject).id);
  if (Array.isArray(tokens) && tokens.every(isToken)) return new Map(tokens.map(({ content, id }) => [content, id]));
  throw new ModelFolderError(file, 'has no list of added tokens', cures.installAgain);
}
