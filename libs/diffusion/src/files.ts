/** Reads a model's files without loading a runtime, for processes that do not draw. */
export { cures, inOneLine, ModelFolderError } from './errors';
export { weightsKind } from './finetune/weights-file';
export type { GraphFile } from './model/graph-file';
export { defaultsFile, defaultsRange, problemsOfDefaults, readModelDefaults } from './model/model-defaults';
export type { ModelDefaults } from './model/model-defaults';
export { entriesBelow, isNoFile, isSpecial, readJsonFile } from './model/model-files';
export { readModelFolder } from './model/model-folder';
export { problemsOfSchedulers } from './model/model-scheduler';
export type { SchedulerProblems } from './model/model-scheduler';
export { schedulerNames } from './schedulers';
export { ClipTokenizer } from './tokenizer/clip-tokenizer';
export { countChunks } from './tokenizer/prompt-chunks';
