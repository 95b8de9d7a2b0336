import { isNativeError } from 'node:util/types';
import { env, InferenceSession, type Tensor } from 'onnxruntime-node';
import { defaultSpinUs, type Device, executionProviders, providerOf, spinning } from './device';
import { cures, ModelFolderError, OutOfMemoryError, ProviderUnavailableError } from '../errors';
import type { GraphFile } from './graph-file';
import { isGraphFault } from './graph-fault';
import { graphIdentity } from './graph-identity';
import { graphLoader, type SharedSessions } from './graph-loader';
import type { GraphValues, ValueFacts } from './graph-values';
import { openOptimized } from './optimized-graph';

/** Where and how a model runs. */
export interface LoadOptions {
  device: Device;
  /** Threads of one call on the CPU; all cores by default. */
  intraOpNumThreads?: number;
  /**
   * Cache folder for optimised graphs, which load faster, or how to choose one for a graph. It is created if missing.
   * Graphs that must be mended are opened from it.
   */
  optimizedModelDir?: string | ((graph: string) => Promise<string>);
  /**
   * For how many microseconds an idle thread spins before it sleeps. While it spins it takes up work at once, and keeps
   * its core from others. Default 50, which bridges the time between two operators of a graph; 0: it sleeps at once.
   */
  spinUs?: number;
  /** Where models of one device have parts in common; a part that is loaded already is not loaded again. */
  sharedSessions?: SharedSessions;
  /** Ends the loading of a model before its next part; a part that is being loaded is loaded to its end. */
  signal?: Pick<AbortSignal, 'throwIfAborted'>;
  /**
   * Opens text encoder and VAE decoder in another thread of the same device, so that their calls do not block this one.
   */
  openElsewhere?: (graph: GraphFile) => Promise<GraphSession>;
}

/** What a part of a model calls: a graph that is loaded here, or in another thread. */
export interface GraphSession extends GraphValues {
  /** Number of calls and their milliseconds, since it was opened. */
  readonly spent: { runs: number; runMs: number };
  /** Runs the graph and returns one of its outputs. @throws OutOfMemoryError if it needs more than there is */
  run(feeds: Record<string, Tensor>, output: string): Promise<Tensor>;
  /** Frees the graph's memory, unless another model uses it. */
  release(): Promise<void>;
}

// Errors reach the caller as exceptions, so they need not be written to stderr as well.
env.logLevel = 'fatal';

/** One loaded graph. Calls block their thread. */
export class ModelSession implements GraphSession {
  /** The time is that inside ONNX Runtime. */
  readonly spent = { runs: 0, runMs: 0 };
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];

  private constructor(
    readonly file: string,
    private readonly session: InferenceSession,
    private readonly releaseSession: () => Promise<void>,
  ) {
    this.inputs = session.inputMetadata.map((value) => valueFacts(file, value));
    this.outputs = session.outputMetadata.map((value) => valueFacts(file, value));
  }

  /**
   * @throws ModelFolderError if ONNX Runtime rejects the graph
   * @throws ProviderUnavailableError if the device's execution provider cannot be loaded
   * @throws OutOfMemoryError if its weights need more than there is
   * @throws Error as it is, if the device or the system is at fault
   */
  static async open(graph: GraphFile, options: LoadOptions): Promise<ModelSession> {
    const provider = providerOf(options.device);
    if (provider !== 'cuda' && graph.cudaOperator)
      throw new ModelFolderError(
        graph.path,
        `was fused for CUDA (${graph.cudaOperator}) and cannot run on ${provider === 'cpu' ? 'the CPU' : 'WebGPU'}`,
        cures.needsCuda,
      );
    try {
      const folder = await cacheFolder(graph.path, options);
      const create = graphLoader(graph, folder);
      const base = sessionOptions(options);
      // A graph that was laid out for WebGPU cannot be written to a file.
      const cache = provider === 'webgpu' ? undefined : folder;
      const load = () => (cache ? openOptimized(graph, cache, provider, base, create) : create(base));
      const shared = await options.sharedSessions?.open(await graphIdentity(graph), load);
      if (shared) return new ModelSession(graph.path, shared.session, () => shared.release());
      const session = await load();
      return new ModelSession(graph.path, session, () => session.release());
    } catch (error) {
      if (error instanceof ModelFolderError) throw error;
      const reason = firstLine(error as Error);
      if (isOutOfMemory((error as Error).message)) throw new OutOfMemoryError(reason, { cause: error });
      if (
        options.device !== 'cpu' &&
        /execution ?provider|shared library|no available backend|CUDA failure|WebGPU adapter/i.test(reason)
      )
        throw new ProviderUnavailableError(options.device, reason);
      if (/requires f16/.test(reason))
        throw new ModelFolderError(
          graph.path,
          'computes in float16, which this GPU does not offer through WebGPU',
          cures.needsFloat32,
        );
      if (!isGraphFault(error)) throw error;
      // What keeps the rewritten graph from loading need not keep the original.
      if (graph.hasScalarTimestep) return ModelSession.open({ ...graph, hasScalarTimestep: false }, options);
      throw (
        tooNew(graph.path, error as Error) ??
        new ModelFolderError(graph.path, `was refused by ONNX Runtime: ${reason}`, cures.exportAgain)
      );
    }
  }

  /**
   * Opens a graph as it is, neither checked nor cached.
   * @throws Error as ONNX Runtime does, ModelFolderError if it has other than tensors
   */
  static async openFile(file: string, options: InferenceSession.SessionOptions): Promise<ModelSession> {
    const session = await InferenceSession.create(file, { ...options, logSeverityLevel: 4 });
    try {
      return new ModelSession(file, session, () => session.release());
    } catch (error) {
      await session.release();
      throw error;
    }
  }

  async run(feeds: Record<string, Tensor>, output: string): Promise<Tensor> {
    const start = performance.now();
    const results = await this.session.run(feeds, [output]).catch((error: unknown) => {
      throw asOutOfMemory(error);
    });
    this.spent.runMs += performance.now() - start;
    this.spent.runs++;
    return results[output];
  }

  release(): Promise<void> {
    return this.releaseSession();
  }
}

async function cacheFolder(graph: string, { optimizedModelDir }: LoadOptions): Promise<string | undefined> {
  return typeof optimizedModelDir === 'function' ? optimizedModelDir(graph) : optimizedModelDir;
}

/**
 * What ONNX Runtime 1.30 and what it calls say of too little memory: its arenas, the allocators of CPU and CUDA,
 * cuBLAS, cuDNN and the C++ library; and V8 of an array.
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

function sessionOptions(options: LoadOptions): InferenceSession.SessionOptions {
  const { device, intraOpNumThreads, spinUs = defaultSpinUs } = options;
  return {
    executionProviders: executionProviders(device),
    logSeverityLevel: 4,
    // A pattern asks for one piece of memory for each shape, which the arena keeps beside what it has: twice as much,
    // and not faster.
    enableMemPattern: false,
    ...(intraOpNumThreads === undefined ? {} : { intraOpNumThreads }),
    ...spinning(spinUs),
  };
}

function valueFacts(file: string, value: InferenceSession.ValueMetadata): ValueFacts {
  if (!value.isTensor)
    throw new ModelFolderError(file, `has the input or output ${value.name}, which is no tensor`, cures.exportAgain);
  return { name: value.name, type: value.type, shape: value.shape };
}

/** What a graph from a newer exporter is refused with. */
function tooNew(file: string, { message }: Error): ModelFolderError | undefined {
  const [, opset, lastOpset] = /Opset (\d+) is under development[^]*?is till opset (\d+)/.exec(message) ?? [];
  if (opset)
    return new ModelFolderError(
      file,
      `was exported for opset ${opset}, and ONNX Runtime knows those up to ${lastOpset}`,
      cures.olderOpset,
    );
  const [, format, lastFormat] =
    /Unsupported model IR version: (\d+), max supported IR version: (\d+)/.exec(message) ?? [];
  if (format)
    return new ModelFolderError(
      file,
      `is in ONNX's file format ${format}, and ONNX Runtime knows those up to ${lastFormat}`,
      cures.olderOnnx,
    );
  return undefined;
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
