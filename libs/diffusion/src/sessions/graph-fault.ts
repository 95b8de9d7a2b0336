import { isNativeError } from 'node:util/types';
import { OnnxModelError } from '../onnx/onnx-model';

/**
 * Messages of CUDA, cuBLAS, cuDNN, Vulkan, Direct3D and the operating system about themselves, as ONNX Runtime 1.30
 * passes them on. They name neither node nor shape of the graph at fault, so the same graph may be sound.
 */
const ofDevice =
  /\bCUDA (?:failure|error)|\bcudaError|\b(?:CUDA_ERROR|CUBLAS|CUDNN|CUFFT|CURAND|CUSPARSE|NVRTC)_?|; GPU=\d|device(?: is| was| has been)? lost|lost device|DeviceLost|wgpu::|\b(?:VK_ERROR|DXGI_ERROR)_/i;
const ofSystem =
  /system error number \d|error code:? \d|too many open files|(?:input\/output|i\/o) error|temporarily unavailable|stale file handle|file doesn't exist|^E[A-Z]{2,}: /i;

/** Words of ONNX Runtime's sentences about a graph it refuses, or cannot run with what it is given. */
const ofGraph =
  /invalid|unsupported|not (?:supported|implemented)|protobuf|no op registered|not a registered|could not find an implementation|inference ?error|\b(?:types?|shapes?|dimensions?|dims?|ranks?|attributes?|opset|ir version|initializers?|external data|tensors?|nodes?|inputs?|outputs?|channels?)\b/i;

/** Whether a graph itself is at fault when it cannot be loaded or run; if not, the same may go well later. */
export function isGraphFault(error: unknown): boolean {
  if (error instanceof OnnxModelError) return true;
  if (!isNativeError(error)) return false;
  // ONNX Runtime begins with the file's path, whose words say nothing.
  const message = error.message.replace(/^Load model from .*? failed:(?:Load model .*? failed\.)? ?/, '');
  return !ofDevice.test(message) && !ofSystem.test(message) && ofGraph.test(message);
}
