export type { FittedAdapter } from './adapters/adapter';
export { readAdapter } from './adapters/adapter-file';
export { fitAdapter } from './adapters/fit-adapter';
export { inspectWeights } from './families/inspect-weights';
export { type MergedUse, writeMerged } from './adapters/merged-tensor';
export { WeightsError } from './adapters/weights-error';
export {
  AbortError,
  cures,
  inOneLine,
  ModelFolderError,
  OutOfMemoryError,
  ProviderUnavailableError,
  RequestError,
} from './errors';
export { type ControlFolder, readControlFolder } from './families/control-folder';
export { isGuided, type ModelKind, rowsOfPicture } from './denoisers/denoiser';
export { readSafetyFolder } from './families/safety-folder';
export { type ModelFolder, readModelFolder } from './families/model-folder';
export { partFolders } from './families/model-parts';
export type { TrainingDefaults } from './families/training-defaults';
export { type AspectRatio, sizeOfPicture } from './families/sizes';
export { identityModel } from './graph/graph';
export { type AdapterUse, loadAdapter, type LoadedAdapter } from './adapters/applied-adapters';
export type { PipelineFacts } from './pipelines/loaded-parts';
export { graphOfPart } from './sessions/part-graph';
export { kindOf } from './pipelines/renderer';
export { ranksOf } from './adapters/row-adapters';
export { encodeTexts, Pipeline } from './pipelines/pipeline';
export type { Conditioner, Conditioning } from './conditioners/conditioner';
export type { ControlUse, Mask, TextToImageRequest } from './pipelines/text-to-image-request';
export { Trajectory } from './pipelines/trajectory';
export { SafetensorsError } from './safetensors/safetensors-header';
export { safetensorsHeader, writeSafetensors } from './safetensors/write-safetensors';
export { type SchedulerName, schedulerNames } from './schedulers';
export { SchedulerError } from './schedulers/scheduler-config';
export { type Device, executionProviders, gpuIndex, type Provider, providerOf } from './sessions/device';
export { asOutOfMemory, type LoadOptions, ModelSession, mostWidenedBytes } from './sessions/model-session';
export { InferenceSession } from './sessions/onnx-runtime';
export { type Tensors } from './sessions/tensor';
export type { PlacedGraph } from './sessions/placed-graph';
export { NotFiniteError, type RgbImage } from './tensor/planes';
export { ClipTokenizer } from './tokenizer/clip-tokenizer';
export {
  assertTrainable,
  foreseenBytes,
  type ForeseenBytes,
  type GateFigures,
  type GateResult,
  judge,
  settingsOfCheckpoint,
  Trainer,
  type TrainerLoad,
  type TrainingForm,
  type TrainingGraph,
  type TrainingPicture,
  type TrainingSettings,
  trainingSettings,
  type TrainingStep,
} from './training';
export { ControlNet, problemOfFit } from './denoisers/control-net';
export { hasCallsInPowersOfTwo, powerOfTwoFrom, powerOfTwoUpTo } from './denoisers/session-denoiser';
export type { UnetFiles } from './denoisers/unet';
export { SafetyChecker, type SafetyFiles } from './safety/safety-checker';
export { TiledUpscaler, UpscalerError } from './upscaling/tiled-upscaler';
export { type LatentDistribution, sampleLatents } from './autoencoders/autoencoder';
export { countOf, type NamedTensor, type NamedTensors } from './weights/named-tensor';
export { type Precision, precisionOf } from './weights/precision';
