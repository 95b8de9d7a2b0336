import * as tokenizers from '@huggingface/tokenizers';

/**
 * The package's own declarations import one another without extensions, which TypeScript's Node
 * resolution cannot follow.
 */
export interface BytePairTokenizer {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
}

/** Of the contents of `tokenizer.json` and `tokenizer_config.json`. */
export const { Tokenizer } = tokenizers as unknown as {
  Tokenizer: new (tokenizer: object, config: object) => BytePairTokenizer;
};
