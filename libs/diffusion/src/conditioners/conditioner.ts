import type { AppliedAdapters } from '../adapters/applied-adapters';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import type { PartFiles } from '../sessions/part-graph';
import type { Tensors } from '../sessions/tensor';
import type { TaughtWord } from '../tokenizer/clip-tokenizer';

/** The texts of a picture, and what decides how they are encoded. */
export interface PictureTexts {
  prompt: string;
  /** Without one it is the empty text, or zeros where the model was trained so. */
  negativePrompt?: string | null;
  /** Whether `(word:1.3)` and its kin are read as attention; plain text by default. */
  promptWeighting?: boolean;
}

/** The encoded texts of a request, shared by its pictures. */
export interface Conditioning {
  /** Chunks that the longer of prompt and negative prompt took. */
  readonly chunks: number;
  /** Tokens of each row: pictures share a call if theirs are equal. */
  readonly lengths: readonly number[];
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
  /** The conditioning that a model is tried with: of no text, and as short as the denoiser takes it. */
  encodeNothing(): Promise<Conditioning>;
}

/** How long a text is for a model. */
export interface TextLength {
  /** Those of its model's template included, and of CLIP's the begin and end of chunks not. */
  tokens: number;
  /** Chunks that it takes, in which long texts are read. */
  chunks: number;
  /** Why it is too long, as the end of a sentence. */
  problem?: string;
}

/** A conditioner before it is loaded: what its files tell. */
export interface ConditionerFiles {
  /** Its text encoders, with the weights that they use. */
  readonly encoders: readonly PartFiles[];
  /** Most tokens that the denoiser takes of a text of one chunk. */
  readonly rowTokens: number;
  /** Most bytes of a text that certainly fit into one chunk; 0 where only counting tells. */
  readonly certainBytes: number;
  /** Whether `clip_skip` says how many of its last layers are left out. */
  readonly takesClipSkip?: true;
  /** The length of a text. @param words that stand for several tokens */
  lengthOf(text: string, weighting: boolean, words?: readonly TaughtWord[]): TextLength;
  /** An upper estimate of the bytes that encoding the texts of a picture takes. */
  callBytes(texts: PictureTexts, isGuided: boolean): number;
  /** Opens and tries it. */
  open(options: LoadOptions): Promise<Conditioner>;
}
