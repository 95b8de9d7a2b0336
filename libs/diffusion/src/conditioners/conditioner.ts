import type { AppliedAdapters } from '../adapters/applied-adapters';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import type { Tensors } from '../sessions/tensor';
import type { TaughtWord } from '../tokenizer/clip-tokenizer';

/** The texts of a picture, and what decides how they are encoded. */
export interface PictureTexts {
  prompt: string;
  /** Without one it is the empty text, or zeros where the model was trained so. */
  negativePrompt?: string | null;
  guidanceScale: number;
  /** Whether `(word:1.3)` and its kin are read as attention; plain text by default. */
  promptWeighting?: boolean;
}

/** The encoded texts of a request, shared by its pictures. */
export interface Conditioning {
  /** Chunks that the longer of prompt and negative prompt took. */
  readonly chunks: number;
  /** Tokens of a row: pictures share a call if they have equally many. */
  readonly tokens: number;
  /**
   * Inputs of the denoiser for each row of a picture, without the axis of rows: the negative prompt and the prompt, or
   * without guidance the prompt alone.
   */
  readonly rows: readonly Tensors[];
}

/** What texts become conditioning with; loaded. */
export interface Conditioner extends Pick<GraphSession, 'spent' | 'release'> {
  /**
   * @param isGuided whether the negative prompt is encoded too, as the first row
   * @throws RequestError if a text is too long
   */
  encode(texts: PictureTexts, isGuided: boolean, adapters: AppliedAdapters): Promise<Conditioning>;
}

/** A conditioner before it is loaded: what its files tell. */
export interface ConditionerFiles {
  /** Tokens of a text that one chunk has room for, and most chunks of a text. */
  readonly chunkTokens: number;
  readonly mostChunks: number;
  /** Whether a text may have tokens that are not made of its bytes: then only counting tells how many. */
  readonly hasAddedWords: boolean;
  /** Chunks that a text takes. @param words that stand for several tokens */
  countChunks(text: string, weighting: boolean, words?: readonly TaughtWord[]): number;
  /** Most rows that encoding the texts of a picture takes. */
  rowsOf(texts: PictureTexts): number;
  /** An upper estimate of the bytes that encoding so many rows takes. */
  callBytes(rows: number): number;
  /** Opens and tries it. */
  open(options: LoadOptions): Promise<Conditioner>;
}
