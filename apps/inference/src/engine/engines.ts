import type { JsonLogger } from '@app/observability';
import { join } from 'node:path';
import type { Config } from '@app/config';
import type { Device } from './device';
import { Engine } from './engine';
import type { ModelLoaded } from './engine-protocol';

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
  /** Called when an engine hangs and the process must end. */
  onStall?: () => void;
}

/** A borrowed engine; it is given back as soon as the pictures are drawn, before they are encoded. */
export interface EngineLoan {
  readonly engine: Engine;
  giveBack(): void;
}

/** One engine per device. Drawings borrow one and give it back, first come, first served. */
export class Engines {
  private readonly free: Engine[];
  private readonly waiting: ((engine: Engine) => void)[] = [];

  private constructor(
    private readonly engines: readonly Engine[],
    readonly devices: readonly Device[],
  ) {
    this.free = [...engines];
  }

  /** Starts an engine for each device, and logs the devices in one line. */
  static async start(
    config: EnginesConfig,
    logger: JsonLogger,
    { threadFile, onLoaded, onStall }: EnginesOptions = {},
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
        onCrash: (error) => logger.error('engine thread ended', error, { device }),
        stallMs: config.engineStallSeconds * 1000,
        onStall: (error) => {
          logger.fatal('engine hangs', error, { device });
          onStall?.();
        },
      });
      const chosen = await engine.start();
      if (chosen.fallback) logger.warn(chosen.fallback);
      if (engines.has(chosen.device)) await engine.close();
      else engines.set(chosen.device, engine);
    }
    const devices = [...engines.keys()];
    logger.log(`drawing on ${devices.join(', ')}`, { wanted: config.devices, threads: config.inferenceThreads });
    return new Engines([...engines.values()], devices);
  }

  /**
   * Lends the next free engine; undefined if there is none within `timeoutMs`. It must be given back; repeated calls of
   * `giveBack` have no effect.
   */
  async borrow(timeoutMs: number): Promise<EngineLoan | undefined> {
    const engine = this.free.pop() ?? (await this.nextFree(timeoutMs));
    if (!engine) return undefined;
    let out = true;
    const giveBack = (): void => {
      if (!out) return;
      out = false;
      const next = this.waiting.shift();
      if (next) next(engine);
      else this.free.push(engine);
    };
    return { engine, giveBack };
  }

  private nextFree(patienceMs: number): Promise<Engine | undefined> {
    return new Promise((resolve) => {
      const take = (engine: Engine): void => {
        clearTimeout(timer);
        resolve(engine);
      };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(take), 1);
        resolve(undefined);
      }, patienceMs);
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
