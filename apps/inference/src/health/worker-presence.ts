import type { Device } from '@app/diffusion';
import type { EngineReport } from '@app/domain';
import { shortHash, weightsName } from '@app/model-store';
import { LiveWorkers, type Presence } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { BrokenModels } from '../drawing/broken-models';
import { WorkerModels } from '../drawing/worker-models';
import type { EngineState } from '../engine-client/engine-state';
import { Engines } from '../engine-client/engines';
import { PictureCredentials } from '../pictures/picture-credentials';

/** Announces to the api processes that this worker is up, and what it can draw. */
@Injectable()
export class WorkerPresence implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private presence?: Presence;

  constructor(
    private readonly workers: LiveWorkers,
    private readonly engines: Engines,
    private readonly models: WorkerModels,
    private readonly broken: BrokenModels,
    private readonly credentials: PictureCredentials,
    private readonly logger: JsonLogger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { devices } = this.engines;
    this.presence = await this.workers.join(
      () => ({
        devices,
        models: this.models.drawableOn(devices),
        engines: this.engines.states.map(reportOf),
        broken: this.broken.list(),
        credentials: this.credentials.state,
      }),
      (error) => this.logger.warnSparingly('the worker could not send its heartbeat', { reason: String(error) }),
    );
  }

  /** Whether no other live worker has been up for longer. */
  async isEldest(): Promise<boolean> {
    return (await this.presence?.isEldest()) ?? false;
  }

  /** If this fails, the row expires by itself. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.presence?.leave().catch(() => undefined);
  }
}

/**
 * The report of a worker about an engine. The key of a model tells its weights in full; people compare
 * the beginnings of hashes.
 */
export function reportOf({ loaded, ...state }: EngineState & { device: Device }): EngineReport {
  return { ...state, loaded: loaded.map(({ key, bytes }) => ({ name: nameOf(key), bytes })) };
}

/**
 * `<model>@<hash>`, and `+<kind>:<hash>:<scale>` of each Fine-Tune that has changed its weights; ` texts` behind it is the
 * part that reads texts.
 */
function nameOf(key: string): string {
  const part = / texts$/.exec(key)?.[0] ?? '';
  const [base, ...changes] = key.slice(0, key.length - part.length).split('+');
  const [name, hash] = base.split('@');
  const changed = changes.map((change) => {
    const [kind, weights, scale] = change.split(':');
    return `+${kind}:${shortHash(weights)}:${scale}`;
  });
  return `${weightsName({ name, hash })}${changed.join('')}${part}`;
}
