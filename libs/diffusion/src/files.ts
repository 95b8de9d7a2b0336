/** Reads a model's files without loading a runtime, for processes that do not draw. */
export { weightsKind } from './finetune/weights-kind';
export { cures } from './model/cures';
export { inOneLine, ModelFolderError } from './model/errors';
export { entriesBelow } from './model/folder-walk';
export type { GraphFile } from './model/graph-file';
export { defaultsFile, defaultsRange, problemsOfDefaults, readModelDefaults } from './model/model-defaults';
export type { ModelDefaults } from './model/model-defaults';
export { readJsonFile } from './model/json-file';
export { readModelFolder } from './model/model-folder';
export { problemsOfSchedulers } from './model/model-scheduler';
export type { SchedulerProblems } from './model/model-scheduler';
export { isNoFile, isSpecial } from './model/regular-file';
export { schedulerNames } from './schedulers';
export { ClipTokenizer } from './tokenizer/clip-tokenizer';
export { countChunks } from './tokenizer/prompt-chunks';
