import { createRequire } from 'node:module';
import { isNativeError } from 'node:util/types';
import type { InferenceSession, Tensor as OnnxTensor } from 'onnxruntime-node';
import { cures, ModelFolderError, OutOfMemoryError, ProviderUnavailableError } from '../errors';
import { defaultSpinUs, type Device, executionProviders, spinning } from './device';
import { isGraphFault } from './graph-fault';
import type { PlacedGraph } from './placed-graph';
import type { Tensors } from './tensor';

/** Where and how a model runs. */
export interface LoadOptions {
  device: Device;
  /** Threads of one call on the CPU; all cores by default. */
  intraOpNumThreads?: number;
  /**
   * For how many microseconds an idle thread spins before it sleeps. While it spins it takes up work at once, and keeps
   * its core from others. Default 1000; 0: it sleeps at once.
   */
  spinUs?: number;
  /** A safetensors file with weights that take the place of the model's, by part and name: `unet.conv_in.weight`. */
  changedWeights?: string;
  /** Whether weights are not copied to where they are read faster: for large graphs, whose copies would double them. */
  sparesMemory?: boolean;
  /** Ends the loading of a model before its next part; a part that is being loaded is loaded to its end. */
  signal?: Pick<AbortSignal, 'throwIfAborted'>;
}

/** An input or output of a graph; a name in place of a length says which lengths are equal. */
export interface ValueFacts {
  name: string;
  type: string;
  shape: readonly (number | string)[];
}

/** The graph that a part of a model calls, loaded here or in another thread. */
export interface GraphSession {
  readonly file: string;
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];
  /** Number of calls and their milliseconds, since it was opened. */
  readonly spent: { runs: number; runMs: number };
  /** Runs the graph and returns all of its outputs. @throws OutOfMemoryError if it needs more than there is */
  run(feeds: Tensors): Promise<Tensors>;
  release(): Promise<void>;
}

type Runtime = typeof import('./onnx-runtime');

/** ONNX Runtime, which is loaded with the first session: who only reads a model's files does without. */
function loadRuntime(): Runtime {
  return createRequire(__filename)('./onnx-runtime') as Runtime;
}

/** One loaded graph. Calls block their thread. */
export class ModelSession implements GraphSession {
  /** The time is that inside ONNX Runtime. */
  readonly spent = { runs: 0, runMs: 0 };
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];

  private constructor(
    readonly file: string,
    private readonly session: InferenceSession,
    private readonly runtime: Runtime,
  ) {
    this.inputs = session.inputMetadata.map((value) => valueFacts(file, value));
    this.outputs = session.outputMetadata.map((value) => valueFacts(file, value));
  }

  /**
   * @throws ModelFolderError if ONNX Runtime rejects the graph or its weights
   * @throws ProviderUnavailableError if the device's execution provider cannot be loaded
   * @throws OutOfMemoryError if its weights need more than there is
   * @throws Error as it is, if the device or the system is at fault
   */
  static async open(graph: PlacedGraph, options: LoadOptions): Promise<ModelSession> {
    const { file, bytes } = graph;
    const runtime = loadRuntime();
    try {
      const session = await runtime.InferenceSession.create(bytes, sessionOptions(options, graph));
      return new ModelSession(file, session, runtime);
    } catch (error) {
      if (error instanceof ModelFolderError) throw error;
      const reason = firstLine(error as Error);
      if (isOutOfMemory((error as Error).message)) throw new OutOfMemoryError(reason, { cause: error });
      if (options.device !== 'cpu' && unavailable.test(reason))
        throw new ProviderUnavailableError(options.device, reason);
      if (!isGraphFault(error)) throw error;
      throw new ModelFolderError(file, `was refused by ONNX Runtime: ${reason}`, cures.installAgain);
    }
  }

  /**
   * Opens a graph as it is.
   * @throws Error as ONNX Runtime does, ModelFolderError if it has other than tensors
   */
  static async openFile(file: string, options: InferenceSession.SessionOptions): Promise<ModelSession> {
    const runtime = loadRuntime();
    const session = await runtime.InferenceSession.create(file, { ...options, logSeverityLevel: 4 });
    try {
      return new ModelSession(file, session, runtime);
    } catch (error) {
      await session.release();
      throw error;
    }
  }

  async run(feeds: Tensors): Promise<Record<string, OnnxTensor>> {
    const start = performance.now();
    const { Tensor } = this.runtime;
    const given = Object.entries(feeds).map(([name, { type, data, dims }]) => [
      name,
      new Tensor(type as 'float32', data as Float32Array, dims),
    ]);
    const results = await this.session
      .run(Object.fromEntries(given) as InferenceSession.FeedsType)
      .catch((error: unknown) => {
        throw asOutOfMemory(error);
      });
    this.spent.runMs += performance.now() - start;
    this.spent.runs++;
    return { ...results };
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

const unavailable = /execution ?provider|shared library|no available backend|CUDA failure|WebGPU adapter/i;

/**
 * Messages about too little memory: of ONNX Runtime 1.30 and what it calls, its arenas, the allocators of CPU and CUDA,
 * cuBLAS, cuDNN and the C++ library; and of V8 about an array.
 */
export function isOutOfMemory(message: string): boolean {
  return /failed to allocate memory|available memory of \d+ is smaller than|out of memory|bad_?\s?alloc|ALLOC(?:ATION)?_FAILED|not enough memory|array buffer allocation failed/i.test(
    message,
  );
}

/** The error itself, unless memory was short and it does not say so by its class. */
export function asOutOfMemory(error: unknown): unknown {
  if (!isNativeError(error) || error instanceof OutOfMemoryError || !isOutOfMemory(error.message)) return error;
  return new OutOfMemoryError(firstLine(error), { cause: error });
}

/**
 * Weights in half precision that would take more than this in float32 stay in their mapped file on the processor, and
 * are widened in each call: those of XL's U-Net are 5.1 GB, and 10.3 in float32. With those of Stable Diffusion 1.5 a
 * step would take 1.2 to 1.3 times as long.
 */
export const mostWidenedBytes = 4 * 2 ** 30;

const keepsHalf = {
  options: { graphOptimizationLevel: 'extended' },
  extra: { optimization: { disable_specified_optimizers: 'ConstantFolding' } },
} as const;
/** A weight that is widened twice, so that it need not be held between, stays so. */
const keepsHalfTwice = {
  ...keepsHalf,
  extra: { optimization: { disable_specified_optimizers: 'ConstantFolding;CommonSubexpressionElimination' } },
} as const;

function sessionOptions(options: LoadOptions, { folder, widenedBytes }: PlacedGraph): InferenceSession.SessionOptions {
  const { device, intraOpNumThreads, spinUs = defaultSpinUs, sparesMemory } = options;
  const isKept = (device === 'cpu' || sparesMemory) && widenedBytes > mostWidenedBytes;
  const half = isKept ? (sparesMemory ? keepsHalfTwice : keepsHalf) : undefined;
  const { extra } = spinning(spinUs);
  const { session } = extra as { session: object };
  return {
    executionProviders: executionProviders(device),
    logSeverityLevel: 4,
    // A pattern asks for one piece of memory for each shape, which the arena keeps beside what it has: twice as much,
    // and not faster.
    enableMemPattern: false,
    ...(intraOpNumThreads === undefined ? {} : { intraOpNumThreads }),
    ...(sparesMemory && { graphOptimizationLevel: 'extended' }),
    ...half?.options,
    extra: {
      ...half?.extra,
      session: {
        ...session,
        ...(sparesMemory && { disable_prepacking: '1' }),
        // Else weights in int8 that are not computed with as such would be widened in each call, and all at once.
        disable_quant_qdq: '1',
        // Sums of products of uint8 and int8 overflow on x64 processors without VNNI: there the weights become uint8.
        x64quantprecision: '1',
        model_external_initializers_file_folder_path: folder,
      },
    },
  };
}

function valueFacts(file: string, value: InferenceSession.ValueMetadata): ValueFacts {
  if (!value.isTensor)
    throw new ModelFolderError(file, `has the input or output ${value.name}, which is no tensor`, cures.otherModel);
  return { name: value.name, type: value.type, shape: value.shape };
}

/**
 * ONNX Runtime's messages are many lines long and name its own source files; only the end of the first line is useful.
 */
function firstLine({ message }: Error): string {
  const [line] = message.trim().split('\n');
  return line
    .replace(/^.*? failed: ?/, '')
    .replace(/(?<!\S)\S+\.cc:\d+ [^\s(]+\((?:[^)]|\)(?! ))*\) /g, '')
    .replace(/(?<!\.)\.+$/, '')
    .slice(0, 300);
}
