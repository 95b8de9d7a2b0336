import type { JsonLogger } from '@app/observability';
import { join } from 'node:path';
import type { Config } from '@app/config';
import type { Device } from './device';
import { Engine } from './engine';
import type { ModelLoaded } from './engine-protocol';

/** What of the configuration decides the engines. */
export type EnginesConfig = Pick<
  Config,
  'devices' | 'inferenceThreads' | 'inferenceMemoryMb' | 'mergedCacheMb' | 'dataDir' | 'engineStallSeconds'
>;

/** How the engines' threads are found, and who hears of them. */
export interface EnginesOptions {
  /** Compiled entry of the threads; tests name the one in `dist`. */
  threadFile?: string;
  onLoaded?: (loaded: ModelLoaded, device: Device | 'auto') => void;
  /** One hangs, and the process has to end for it. */
  onStall?: () => void;
}

/** An engine on loan; given back as soon as the pictures are drawn, while they are still being encoded. */
export interface EngineLoan {
  readonly engine: Engine;
  giveBack(): void;
}

/** One engine a device. Whoever draws takes one and gives it back; who comes first is served first. */
export class Engines {
  private readonly free: Engine[];
  private readonly waiting: ((engine: Engine) => void)[] = [];

  private constructor(
    private readonly engines: readonly Engine[],
    readonly devices: readonly Device[],
  ) {
    this.free = [...engines];
  }

  /** Starts an engine for each device, and says in one line which there are. */
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
        // Rows of one call share the cores; there is never more than one engine on the CPU.
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
   * Lends the next engine that is free; undefined when none is within `patienceMs`. What is borrowed has to be given back;
   * doing so twice is the same as once.
   */
  async borrow(patienceMs: number): Promise<EngineLoan | undefined> {
    const engine = this.free.pop() ?? (await this.nextFree(patienceMs));
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
   * Resolves when the thread of each engine runs; one that ended is started again.
   * @throws EngineBrokenError if one hangs
   */
  async alive(): Promise<void> {
    await Promise.all(this.engines.map((engine) => engine.start()));
  }

  /** Ends every engine; what they draw is given up. */
  async close(): Promise<void> {
    await Promise.all(this.engines.map((engine) => engine.close()));
  }
}

function megabytes(bytes: { modelBytes: number; totalBytes: number }) {
  return { modelMb: Math.round(bytes.modelBytes / 2 ** 20), totalMb: Math.round(bytes.totalBytes / 2 ** 20) };
}
