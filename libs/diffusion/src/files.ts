/** What reads a model's files and loads no runtime, for processes that draw nothing. */
export { ModelFolderError } from './session/errors';
export { readModelFolder } from './session/model-folder';
export { ClipTokenizer } from './tokenizer/clip-tokenizer';
export { countChunks } from './tokenizer/prompt-chunks';
