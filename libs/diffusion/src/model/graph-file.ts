import { realpath } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { OnnxModel, OnnxModelError } from '../onnx/onnx-model';
import type { OnnxNode } from '../onnx/onnx-proto';
import { hasScalarTimestep } from '../onnx/edited-graph';
import { cures, ModelFolderError } from '../errors';
import { rethrowPassing } from './graph-fault';
import { type GraphValues, valuesOf } from './graph-values';
import { isPointer, isPointerFile, statFile } from './model-files';
import { existsSync, readdirSync } from 'node:fs';

/**
 * Operators into which ONNX Runtime's own tools fuse a diffusion model and for which its CPU
 * provider has no kernel on x64.
 * Source: the operators that the tools write, minus the CPU kernels of onnxruntime 1.30.
 */
const cudaOperators =
  /^(BiasAdd|BiasSplitGelu|GemmFastGelu|GroupNorm|Nhwc(Fused)?Conv|Packed(MultiHead)?Attention|SkipGroupNorm)$/;

/** A graph that was read completely except for its weights: it is whole, and everything it refers to exists. */
export interface GraphFile {
  path: string;
  /** Files beside the graph with its weights, as the graph names them. */
  externalFiles: string[];
  /** Whether two nodes share a name, which ONNX Runtime rejects. */
  hasRepeatedNames: boolean;
  /** Whether it takes one timestep for all rows, and can be rewritten to take one for each. */
  hasScalarTimestep: boolean;
  /** Whether its weights are links out of its folder, as in a hub's cache, which ONNX Runtime does not follow. */
  linksOutside: boolean;
  /** An operator that only CUDA implements, if the graph has one. */
  cudaOperator: string | undefined;
  /** Input channels of the first convolution, if it reads an input of the graph. */
  inputChannels: number | undefined;
  /** Height and width of its latents, where it was exported for one size only. */
  fixedLatents: { height?: number; width?: number };
  /** Tokens of a prompt, where it was exported for one number only. */
  fixedTokens: number | undefined;
  /** Width of the embeddings that a U-Net takes or a text encoder gives, if the graph says it. */
  embeddingWidth: number | undefined;
  /** What it takes and gives, if the graph says all of it. */
  values: GraphValues | undefined;
}

/**
 * Reads the structure of an ONNX file and checks that every byte it refers to exists, so that ONNX Runtime never
 * gets a truncated file.
 * @throws ModelFolderError naming the file that is missing, truncated or not an ONNX model
 */
export async function readGraphFile(path: string): Promise<GraphFile> {
  await statFile(path);
  const model = openModel(path);
  const sizes = new Map<string, number>();
  let linksOutside = false;
  for (const name of model.externalFiles()) {
    const file = join(dirname(path), name);
    const found = await statFile(file);
    if (!found?.isFile())
      throw new ModelFolderError(file, `is missing, and ${path} keeps its weights there`, cures.installAgain);
    if (!(await realpath(file)).startsWith((await realpath(dirname(path))) + sep)) linksOutside = true;
    if (isPointerFile(file)) throw new ModelFolderError(file, isPointer, cures.getFile);
    sizes.set(name, found.size);
  }
  for (const { data } of model.initializers.values()) {
    if (data?.location === undefined) continue;
    const size = sizes.get(data.location)!;
    if (data.begin > size || (data.end ?? 0) > size)
      throw new ModelFolderError(
        join(dirname(path), data.location),
        `is cut short: it has ${size} bytes and more are named`,
        cures.installAgain,
      );
  }
  const names = model.nodes.map(({ name }) => name).filter((name) => name !== '');
  return {
    path,
    externalFiles: [...sizes.keys()],
    hasRepeatedNames: new Set(names).size < names.length,
    hasScalarTimestep: hasScalarTimestep(model),
    linksOutside,
    cudaOperator: model.nodes.map(cudaOnly).find((operator) => operator !== undefined),
    inputChannels: convolvedChannels(model),
    fixedLatents: fixedLatents(model),
    fixedTokens: model.shapes.get('encoder_hidden_states')?.[1],
    embeddingWidth: (model.shapes.get('encoder_hidden_states') ?? model.shapes.get('last_hidden_state'))?.[2],
    values: valuesOf(model),
  };
}

/** The latents are the only input with four dimensions, of U-Net and VAE decoder alike. */
function fixedLatents({ inputs, shapes }: OnnxModel): GraphFile['fixedLatents'] {
  const [, , height, width] = inputs.map((name) => shapes.get(name)).find((shape) => shape?.length === 4) ?? [];
  return { ...(height !== undefined && { height }), ...(width !== undefined && { width }) };
}

/**
 * Read from the weights, because a run does not always fail: on processors without AVX-512 the runtime's fastest
 * kernels accept fewer channels than they have weights for, and read past the end.
 */
function convolvedChannels({ nodes, inputs, initializers }: OnnxModel): number | undefined {
  const casts = new Map(
    nodes.filter(({ opType }) => opType === 'Cast').map((node) => [node.outputs[0], node.inputs[0]]),
  );
  const uncast = (name: string): string => casts.get(name) ?? name;
  const first = nodes.find((node) => node.opType === 'Conv' && inputs.includes(uncast(node.inputs[0])));
  return first && initializers.get(uncast(first.inputs[1]))?.dims[1];
}

/** The first operator that cannot run on the CPU. */
function cudaOnly({ opType, inputs }: OnnxNode): string | undefined {
  // Without a value input, keys and values are packed into one tensor: the CPU's kernel loads that,
  // but fails when it runs.
  if (opType === 'MultiHeadAttention' && !inputs[2]) return 'MultiHeadAttention with packed inputs';
  return cudaOperators.test(opType) ? opType : undefined;
}

function openModel(path: string): OnnxModel {
  try {
    return OnnxModel.open(path);
  } catch (error) {
    if (error instanceof OnnxModelError && isPointerFile(path))
      throw new ModelFolderError(path, isPointer, cures.getFile);
    if (error instanceof OnnxModelError)
      throw new ModelFolderError(path, `is no whole ONNX model (${lastClause(error)})`, cures.installAgain);
    rethrowPassing(error);
    throw new ModelFolderError(
      path,
      `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`,
      cures.allowReading,
    );
  }
}

/** The reason, without the file's name before it and the full stop after it. */
function lastClause({ message }: Error): string {
  return message.slice(message.indexOf(': ') + 2).replace(/\.$/, '');
}

/**
 * The graph of a part that every device can load: `model.onnx`, or the only one with any name;
 * undefined if there is none.
 */
export function findPlainGraph(folder: string): string | undefined {
  const graphs = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.onnx')) : [];
  const name = graphs.includes('model.onnx') || graphs.length !== 1 ? 'model.onnx' : graphs[0];
  return graphs.includes(name) ? join(folder, name) : undefined;
}
