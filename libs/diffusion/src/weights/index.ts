export { parseLora } from './lora';
export type { Lora, LoraModule } from './lora';
export type { LoraFormat, ModelPart } from './lora-keys';
export { mergeLora } from './merge';
export type { MergeLoraOptions } from './merge';
export { hashFile, hashFolder, removeMerged } from './merged-folder';
export { OnnxModel, OnnxModelError } from './onnx-model';
export {
  readSafetensors,
  readSafetensorsHeader,
  readSafetensorsSync,
  SafetensorsError,
  toFloat32,
} from './safetensors';
export type {
  SafetensorsArray,
  SafetensorsDtype,
  SafetensorsEntry,
  SafetensorsHeader,
  SafetensorsInfo,
} from './safetensors';
export { WeightsError } from './weights-error';
export type { WeightsErrorCode } from './weights-error';
