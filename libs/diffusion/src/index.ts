export {
  AbortError,
  cures,
  inOneLine,
  ModelFolderError,
  OutOfMemoryError,
  ProviderUnavailableError,
  RequestError,
} from './errors';
export { WeightsError } from './finetune/weights-error';
export { inspectWeights } from './finetune/weights-file';
export { mergeLora } from './lora/merge-lora';
export type { MergeLoraOptions } from './lora/merge-lora';
export { defaultSpinUs, executionProviders, gpuIndex, providerOf, spinning } from './model/device';
export type { Device } from './model/device';
export { isGraphFault } from './model/graph-fault';
export type { GraphFile } from './model/graph-file';
export { graphIdentity } from './model/graph-identity';
export { SharedSessions } from './model/graph-loader';
export { readModelFolder } from './model/model-folder';
export { asOutOfMemory, ModelSession } from './model/model-session';
export type { GraphSession, LoadOptions } from './model/model-session';
export { OnnxModel, OnnxModelError } from './onnx/onnx-model';
export { identityModel } from './onnx/small-graph';
export { modelWidths } from './pipelines/model-facts';
export type { ModelFacts, ModelWidths } from './pipelines/model-facts';
export { kindOf } from './pipelines/renderer';
export type { Renderer } from './pipelines/renderer';
export { StableDiffusionPipeline } from './pipelines/stable-diffusion-pipeline';
export type { TextToImageRequest } from './pipelines/text-to-image-request';
export { Trajectory } from './pipelines/trajectory';
export { SafetensorsError } from './safetensors/safetensors-header';
export { schedulerNames } from './schedulers';
export type { SchedulerName } from './schedulers';
export { copyOfTensor, tensorFromCopy } from './tensor/input-buffer';
export type { TensorCopy } from './tensor/input-buffer';
export { NotFiniteError } from './tensor/planes';
export type { RgbImage } from './tensor/planes';
export { mergeTextualInversion } from './textual-inversion/merge-textual-inversion';
export { ClipTokenizer } from './tokenizer/clip-tokenizer';
export { rowsOfTexts } from './tokenizer/prompt-chunks';
export type { PictureTexts } from './tokenizer/prompt-chunks';
export { hasCallsInPowersOfTwo, powerOfTwoUpTo } from './unet/unet';
