/** Reads a model's files without loading a runtime, for processes that do not draw. */
export { cures, inOneLine, ModelFolderError } from './errors';
export { type ControlFolder, describesControlNet, findControlFolder } from './families/control-folder';
export { findSafetyFolder, safetyFolder } from './families/safety-folder';
export type { SafetyFiles } from './safety/safety-checker';
export { visionEdge as safetyEdge } from './architectures/clip-vision-model';
export type { ModelKind } from './denoisers/denoiser';
export {
  defaultsFile,
  defaultsRange,
  type ModelDefaults,
  problemsOfDefaults,
  readModelDefaults,
} from './families/model-defaults';
export { loraForComfy } from './adapters/lora-for-comfy';
export { entriesBelow, isNoFile, isSpecial } from './weights/folder-files';
export { describedFamilyOf } from './families/described';
export { type ModelFolder, readModelFolder, readModelIndex, readModelParts } from './families/model-folder';
export { denoiserFolders, partFolders, refusing, vaeFile } from './families/model-parts';
export { problemsOfSchedulers, type SchedulerProblems } from './families/model-scheduler';
export { schedulerNames } from './schedulers';
export { isOfFlow } from './schedulers/scheduler-config';
export { drawnSteps } from './schedulers/timesteps';
export type { ConditionerFiles, TextLength } from './conditioners/conditioner';
export type { Ability, Family } from './families/family';
export type { TaughtWord } from './tokenizer/clip-tokenizer';
export { hasTransformer, partsOfFile } from './weights/parts-of-file';
export { readWeightsFile } from './weights/weights-file';
export type { PartName, PartTensors } from './weights/original-names';
export { qwen3TokenizerFiles } from './tokenizer/vocabulary';
export { type Conversion, planConversion, type TargetPrecision } from './weights/convert-weights';
export { countOf, type NamedTensors } from './weights/named-tensor';
export { type Precision, precisionOf } from './weights/precision';
export { readPart, readSafetensors } from './weights/safetensors-file';
