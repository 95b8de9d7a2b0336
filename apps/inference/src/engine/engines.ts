import type { JsonLogger } from '@app/observability';
import { join } from 'node:path';
import type { Config } from '@app/config';
import type { Device } from '@app/diffusion';
import { Engine } from './engine';
import type { EngineStep, ModelLoaded } from './engine-protocol';

/** The settings of the engines. */
export type EnginesConfig = Pick<
  Config,
  'devices' | 'inferenceThreads' | 'inferenceMemoryMb' | 'mergedCacheMb' | 'dataDir' | 'engineStallSeconds'
>;

/** How to start the engines' threads, and callbacks. */
export interface EnginesOptions {
  /** Compiled entry of the threads; tests name the one in `dist`. */
  threadFile?: string;
  onLoaded?: (loaded: ModelLoaded, device: Device | 'auto') => void;
  onStep?: (step: EngineStep) => void;
  /** Called when an engine hangs and the process must end. */
  onStall?: () => void;
}

/** Tasks that one engine has at once: more than share a call, so that a short one need not wait for a long one to end. */
const placesOfEngine = 12;

/** A place of an engine on loan; given back as soon as the pictures are drawn, while they are still being encoded. */
export interface EngineLoan {
  readonly engine: Engine;
  giveBack(): void;
}

/** One engine a device. Whoever draws takes a place and gives it back; who comes first is served first, by the engine with most places free. */
export class Engines {
  private readonly free: Map<Engine, number>;
  private readonly waiting: ((engine: Engine) => void)[] = [];

  private constructor(
    private readonly engines: readonly Engine[],
    readonly devices: readonly Device[],
  ) {
    this.free = new Map(engines.map((engine) => [engine, placesOfEngine]));
  }

  /** Tasks that all engines have at once. */
  get places(): number {
    return this.engines.length * placesOfEngine;
  }

  /** Starts an engine for each device, and logs the devices in one line. @throws DeviceUnavailableError if one cannot be used */
  static async start(
    config: EnginesConfig,
    logger: JsonLogger,
    { threadFile, onLoaded, onStep, onStall }: EnginesOptions = {},
  ): Promise<Engines> {
    const wanted = config.devices === 'auto' ? (['auto'] as const) : config.devices;
    const engines = new Map<Device, Engine>();
    for (const device of wanted) {
      const engine: Engine = new Engine({
        device,
        // Rows of one call share the cores; there is at most one engine on the CPU.
        intraOpNumThreads: config.inferenceThreads,
        ...(config.inferenceMemoryMb && { memoryBytes: config.inferenceMemoryMb * 2 ** 20 }),
        cacheDir: join(config.dataDir, 'cache'),
        mergedCacheBytes: config.mergedCacheMb * 2 ** 20,
        ...(threadFile && { threadFile }),
        onLoaded: (loaded) => {
          const { key, loadMs, modelBytes, totalBytes, evicted } = loaded;
          onLoaded?.(loaded, device);
          logger.log('model loaded', { device, model: key, loadMs, ...megabytes({ modelBytes, totalBytes }), evicted });
        },
        ...(onStep && { onStep }),
        onCrash: (error) => logger.error('engine thread ended', error, { device }),
        stallMs: config.engineStallSeconds * 1000,
        onStall: (error) => {
          logger.fatal('engine hangs', error, { device });
          onStall?.();
        },
      });
      engines.set(await engine.start(), engine);
    }
    const devices = [...engines.keys()];
    logger.log(`drawing on ${devices.join(', ')}`, { wanted: config.devices, threads: config.inferenceThreads });
    return new Engines([...engines.values()], devices);
  }

  /**
   * Lends a place of the engine that has most of them free; undefined when none is within `timeoutMs`. What is borrowed has to be
   * given back; doing so twice is the same as once.
   */
  async borrow(timeoutMs: number): Promise<EngineLoan | undefined> {
    const engine = this.takeFree() ?? (await this.nextFree(timeoutMs));
    if (!engine) return undefined;
    let out = true;
    const giveBack = (): void => {
      if (!out) return;
      out = false;
      const next = this.waiting.shift();
      if (next) next(engine);
      else this.free.set(engine, this.free.get(engine)! + 1);
    };
    return { engine, giveBack };
  }

  private takeFree(): Engine | undefined {
    const [[engine, places]] = [...this.free].sort(([, a], [, b]) => b - a);
    if (places === 0) return undefined;
    this.free.set(engine, places - 1);
    return engine;
  }

  private nextFree(timeoutMs: number): Promise<Engine | undefined> {
    return new Promise((resolve) => {
      const take = (engine: Engine): void => {
        clearTimeout(timer);
        resolve(engine);
      };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(take), 1);
        resolve(undefined);
      }, timeoutMs);
      this.waiting.push(take);
    });
  }

  /**
   * Resolves when the thread of each engine is running; one that ended is restarted.
   * @throws EngineBrokenError if one hangs
   */
  async alive(): Promise<void> {
    await Promise.all(this.engines.map((engine) => engine.start()));
  }

  /** Ends every engine and aborts its drawing. */
  async close(): Promise<void> {
    await Promise.all(this.engines.map((engine) => engine.close()));
  }
}

function megabytes(bytes: { modelBytes: number; totalBytes: number }) {
  return { modelMb: Math.round(bytes.modelBytes / 2 ** 20), totalMb: Math.round(bytes.totalBytes / 2 ** 20) };
}
