import { InferenceSession } from './onnx-runtime';
import { ModelFolderError } from '../errors';
import { rethrowPassing } from '../weights/folder-files';
import { isGraphFault } from './graph-fault';
import { ModelSession } from './model-session';
import type { PlacedGraph } from './placed-graph';

const node = "Non-zero status code returned while running Conv node. Name:'/conv' Status Message: ";
const path = '/models/node_modules/tensor/unet/model.onnx';

// As ONNX Runtime 1.30 words them.
const faultsOfGraphs = [
  'This is an invalid model. In Node, ("/act", Sigmoyd, "", -1), Error No Op registered for Sigmoyd with domain_version of 17',
  'Failed to load model because protobuf parsing failed.',
  `Load model from ${path} failed:Protobuf parsing failed.`,
  `Load model from ${path} failed:Unsupported model IR version: 99, max supported IR version: 11`,
  "Could not find an implementation for GroupNorm(1) node with name 'norm'",
  `${node}Input channels C is not equal to kernel channels * group. C: 3 kernel channels: 4 group: 1`,
  'Got invalid dimensions for input: sample for the following indices',
];
const faultsOfOthers = [
  `${node}CUDNN failure 4: CUDNN_STATUS_INTERNAL_ERROR ; GPU=0 ; hostname=gpu ; file=conv.cc ; line=1 ; expr=`,
  `${node}CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED ; GPU=0 ; hostname=gpu`,
  'CUDA failure 700: an illegal memory access was encountered ; GPU=0',
  'CUDA error cudaErrorIllegalAddress:an illegal memory access was encountered',
  `${node}WebGPU device lost (2): the device was destroyed`,
  `Load model from ${path} failed:system error number 24`,
  `Load model from ${path} failed:Load model ${path} failed. File doesn't exist`,
  `EMFILE: too many open files, open '${path}'`,
  'The sun shines.',
];

describe(isGraphFault.name, () => {
  it.each(faultsOfGraphs)('recognises %j', (message) => expect(isGraphFault(new Error(message))).toBe(true));
  it.each(faultsOfOthers)('does not take %j for one', (message) =>
    expect(isGraphFault(new Error(message))).toBe(false),
  );
});

describe(rethrowPassing.name, () => {
  it('throws what says nothing about the file', () => {
    expect(() => rethrowPassing(Object.assign(new Error('too many'), { code: 'EMFILE' }))).toThrow('too many');
    expect(() => rethrowPassing(Object.assign(new Error('none'), { code: 'ENOENT' }))).not.toThrow();
  });
});

describe('ModelSession.open', () => {
  const graph: PlacedGraph = { file: path, bytes: new Uint8Array(0), folder: '/models', widenedBytes: 0 };
  afterEach(() => jest.restoreAllMocks());

  it('says that a model is broken only if its graph is', async () => {
    const create = jest.spyOn(InferenceSession, 'create');
    const open = (message: string) => {
      create.mockRejectedValue(new Error(message));
      return ModelSession.open(graph, { device: 'cuda:0' }).catch((error: unknown) => error);
    };
    for (const message of faultsOfOthers) expect(await open(message)).not.toBeInstanceOf(ModelFolderError);
    for (const message of faultsOfGraphs) expect(await open(message)).toBeInstanceOf(ModelFolderError);
  });
});
