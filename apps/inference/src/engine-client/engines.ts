import type { JsonLogger } from '@app/observability';
import { join } from 'node:path';
import type { Config } from '@app/config';
import { usableCores } from '@app/process';
import type { Device } from '@app/diffusion';
import { Engine } from './engine';
import type { EngineStep, ModelLoaded } from '../engine/engine-protocol';
import type { EngineState } from './engine-state';

/** The settings of the engines. */
export type EnginesConfig = Pick<
  Config,
  'devices' | 'inferenceThreads' | 'inferenceMemoryMb' | 'dataDir' | 'engineStallSeconds'
>;

/** How to start the engines' threads, and callbacks. */
export interface EnginesOptions {
  /** Compiled entry of the threads; tests name the one in `dist`. */
  threadFile?: string;
  onLoaded?: (loaded: ModelLoaded, device: Device | 'auto') => void;
  onStep?: (step: EngineStep) => void;
  /** Called when an engine hangs or has lost its device, and the process must end. */
  onStall?: () => void;
}

/**
 * Tasks that an engine has at once: more than share a call, so that a short one need not wait for the end of a long
 * one.
 */
export const slotsOfEngine = 12;

/** One engine a device. */
export class Engines {
  readonly slotsOfEngine = slotsOfEngine;
  readonly devices: readonly Device[];

  private constructor(
    readonly all: readonly Engine[],
    /** Threads of one call on the processor. */
    readonly threads: number,
  ) {
    this.devices = all.map(({ device }) => device!);
  }

  /** Whether one hangs or has lost its device, so that the process must end. */
  get isStalled(): boolean {
    return this.all.some((engine) => engine.isStalled);
  }

  get states(): (EngineState & { device: Device })[] {
    return this.all.map((engine, index) => ({ device: this.devices[index], ...engine.state }));
  }

  /** Bytes that models, drawings and a training may take on the first device. */
  get memoryBytes(): number {
    return this.all[0].state.memoryBytes;
  }

  /**
   * Takes bytes of the first device's memory for a training.
   * @returns `reserved` resolves when it may take them, which current drawings may delay; `release` gives them back
   */
  reserve(bytes: number): { reserved: Promise<void>; release: () => void } {
    const [engine] = this.all;
    return { reserved: engine.reserve(bytes), release: () => void engine.reserve(0) };
  }

  /**
   * Starts an engine for each device. Logs the devices in one line, and before it why `auto` passed others over.
   * @throws DeviceUnavailableError if one cannot be used
   */
  static async start(
    config: EnginesConfig,
    logger: JsonLogger,
    { threadFile, onLoaded, onStep, onStall }: EnginesOptions = {},
  ): Promise<Engines> {
    // CUDA counts the fastest first by default, and nvidia-smi, which is asked for a GPU's memory, by PCI bus. The
    // runtime sees what is set here, and not what a thread sets.
    process.env.CUDA_DEVICE_ORDER ??= 'PCI_BUS_ID';
    const wanted = config.devices === 'auto' ? (['auto'] as const) : config.devices;
    const threads = threadsOf(config, logger);
    const settings = {
      // Rows of one call share the cores; there is at most one engine on the CPU.
      intraOpNumThreads: threads,
      cacheDir: join(config.dataDir, 'cache'),
      ...(config.inferenceMemoryMb && { memoryBytes: config.inferenceMemoryMb * 2 ** 20 }),
    };
    const engines: Engine[] = [];
    for (const device of wanted) {
      const engine = new Engine({
        settings: { device, ...settings },
        ...(threadFile && { threadFile }),
        ...(onStep && { onStep }),
        onNote: (text) => logger.log(text),
        onLoaded: (loaded) => {
          const { key: model, loadMs, modelBytes, totalBytes } = loaded;
          onLoaded?.(loaded, device);
          const [modelMb, totalMb] = [modelBytes, totalBytes].map((bytes) => Math.round(bytes / 2 ** 20));
          logger.log('model loaded', { device, model, loadMs, modelMb, totalMb });
        },
        onReleased: (model) => logger.log('model released', { device, model }),
        onCrash: (error) => logger.error('engine thread ended', error, { device }),
        stallMs: config.engineStallSeconds * 1000,
        onStall: (error) => {
          logger.fatal('engine is of no more use', error, { device });
          onStall?.();
        },
      });
      await engine.start();
      engines.push(engine);
    }
    const started = new Engines(engines, threads);
    logger.log(`drawing on ${started.devices.join(', ')}`, { wanted: config.devices, threads });
    return started;
  }

  /**
   * Resolves when the thread of each engine is running; one that ended is restarted.
   * @throws EngineBrokenError if one hangs or has lost its device
   */
  async ensureRunning(): Promise<void> {
    await Promise.all(this.all.map((engine) => engine.start()));
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((engine) => engine.close()));
  }
}

/**
 * Threads of the engines, at most one a core: more only wait for each other. Too many are a warning and no error,
 * because machines of several sizes often share one environment, and an api that reads it draws nothing.
 */
function threadsOf({ inferenceThreads: wanted }: EnginesConfig, logger: JsonLogger): number {
  const cores = usableCores();
  if (wanted > cores)
    logger.warn(`INFERENCE_THREADS is ${wanted}, and this process may use ${cores} cores: ${cores} threads are used`);
  return Math.min(wanted, cores);
}
