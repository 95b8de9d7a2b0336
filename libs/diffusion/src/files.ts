/** What reads a model's files and loads no runtime, for processes that draw nothing. */
export { ModelFolderError } from './model/errors';
export { readModelFolder } from './model/model-folder';
export { ClipTokenizer } from './tokenizer/clip-tokenizer';
export { countChunks } from './tokenizer/prompt-chunks';
