import { InferenceWorker, newIdentifier } from '@app/domain';
import type { DataSource } from 'typeorm';

/** Interval between the heartbeats of an inference process. */
export const workerBeatMs = 5_000;

/** A process that is silent for this long counts as gone. */
export const silentMs = 3 * workerBeatMs;

/** What an inference process draws on and with. */
export interface WorkerAbilities {
  /** The devices actually used, `cpu`, `webgpu` or `cuda:<n>`. */
  devices: readonly string[];
  /** Names of the models that it can draw now. */
  models: readonly string[];
}

/** The same of a live process; `models` is null of an older version, which does not say. */
export type LiveWorker = Pick<InferenceWorker, 'devices' | 'models'>;

/** Which inference processes are up and what they can draw. The database's clock decides, so the machines' clocks need not agree. */
export class LiveWorkers {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Sends a heartbeat now and every `workerBeatMs`, until `leave` is called. A failed beat is reported and the next one still
   * sent: a worker without heartbeats can still draw.
   * @param abilities asked for before each heartbeat
   */
  async join(abilities: () => WorkerAbilities, onError: (error: unknown) => void): Promise<{ leave(): Promise<void> }> {
    const id = newIdentifier();
    let beating = this.beat(id, abilities()).catch(onError);
    await beating;
    const timer = setInterval(() => {
      beating = this.beat(id, abilities()).catch(onError);
    }, workerBeatMs);
    timer.unref();
    return {
      leave: async () => {
        clearInterval(timer);
        // A beat in progress would insert the row again.
        await beating;
        await this.dataSource.manager.delete(InferenceWorker, { id });
      },
    };
  }

  /** All live processes. */
  all(): Promise<LiveWorker[]> {
    return this.dataSource.query(
      `SELECT devices, models FROM inference_workers WHERE heartbeat_at > now() - $1 * interval '1 ms'`,
      [silentMs],
    );
  }

  private async beat(id: string, { devices, models }: WorkerAbilities): Promise<void> {
    await this.dataSource.query(
      `INSERT INTO inference_workers (id, devices, models, started_at, heartbeat_at) VALUES ($1, $2, $3, now(), now())
       ON CONFLICT (id) DO UPDATE SET devices = excluded.devices, models = excluded.models, heartbeat_at = excluded.heartbeat_at`,
      [id, devices, models],
    );
    // In one order, so that two workers do not wait for each other.
    await this.dataSource.query(
      `INSERT INTO drawable_models (name, drawable_at) SELECT name, now() FROM unnest($1::text[]) AS name ORDER BY name
       ON CONFLICT (name) DO UPDATE SET drawable_at = excluded.drawable_at`,
      [models],
    );
    await this.dataSource.query(`DELETE FROM inference_workers WHERE heartbeat_at < now() - interval '1 day'`);
    await this.dataSource.query(`DELETE FROM drawable_models WHERE drawable_at < now() - interval '1 day'`);
  }
}

/** The devices of these processes on which a model is drawn, without duplicates: `cpu` first, CUDA devices by number last. */
export function devicesFor(
  { name, requiresCuda }: { name: string; requiresCuda: boolean },
  workers: readonly LiveWorker[],
): string[] {
  const able = workers.filter(({ models }) => models?.includes(name) ?? true).flatMap(({ devices }) => devices);
  const devices = new Set(able.filter((device) => !requiresCuda || device.startsWith('cuda:')));
  return [...devices].sort((a, b) => indexOf(a) - indexOf(b));
}

function indexOf(device: string): number {
  const named = ['cpu', 'webgpu'].indexOf(device);
  return named < 0 ? Number(device.slice('cuda:'.length)) : named - 2;
}
