export { inspectWeights } from './inspect';
export type { WeightsSummary } from './inspect';
export type { Lora, LoraModule } from './lora';
export type { LoraFormat, ModelPart } from './lora-keys';
export { mergeLora } from './merge';
export type { MergeLoraOptions } from './merge';
export { mergeTextualInversion } from './merge-textual-inversion';
export type { MergeTextualInversionOptions } from './merge-textual-inversion';
export { hashFile, hashFolder, pruneMerged, removeMerged } from './merged-folder';
export { OnnxModel, OnnxModelError } from './onnx-model';
export {
  readSafetensors,
  readSafetensorsHeader,
  readSafetensorsSync,
  SafetensorsError,
  toFloat32,
} from './safetensors';
export type { SafetensorsDtype, SafetensorsEntry, SafetensorsHeader, SafetensorsInfo } from './safetensors';
export type { TextualInversion } from './textual-inversion';
export { WeightsError } from './weights-error';
export type { WeightsErrorCode } from './weights-error';
export { loadLora, loadTextualInversion } from './weights-file';
