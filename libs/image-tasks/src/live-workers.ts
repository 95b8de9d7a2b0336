import { InferenceWorker, newIdentifier } from '@app/domain';
import type { DataSource } from 'typeorm';

/** How often an inference process says that it lives. */
export const workerBeatMs = 5_000;

/** A process that has been silent for this long is gone. */
const silentMs = 3 * workerBeatMs;

/** Which inference processes are up and what they draw on. The database's clock decides, so that machines need not agree on the time. */
export class LiveWorkers {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Says that this process lives, now and every `workerBeatMs`, until `leave` is called. A beat that fails is reported and
   * the next one tried: a worker that cannot be seen still draws.
   * @param devices what it really draws on, `cpu` or `cuda:<n>`.
   */
  async join(devices: readonly string[], onError: (error: unknown) => void): Promise<{ leave(): Promise<void> }> {
    const id = newIdentifier();
    let beating = this.beat(id, devices).catch(onError);
    await beating;
    const timer = setInterval(() => {
      beating = this.beat(id, devices).catch(onError);
    }, workerBeatMs);
    timer.unref();
    return {
      leave: async () => {
        clearInterval(timer);
        // A beat under way would write the row anew.
        await beating;
        await this.dataSource.manager.delete(InferenceWorker, { id });
      },
    };
  }

  /** Devices of all processes that are up, each once: `cpu` first, then the GPUs by number. */
  async devices(): Promise<string[]> {
    const rows: { device: string }[] = await this.dataSource.query(
      `SELECT DISTINCT unnest(devices) AS device FROM inference_workers
       WHERE heartbeat_at > now() - $1 * interval '1 ms'`,
      [silentMs],
    );
    return rows.map(({ device }) => device).sort((a, b) => indexOf(a) - indexOf(b));
  }

  private async beat(id: string, devices: readonly string[]): Promise<void> {
    await this.dataSource.query(
      `INSERT INTO inference_workers (id, devices, started_at, heartbeat_at) VALUES ($1, $2, now(), now())
       ON CONFLICT (id) DO UPDATE SET devices = excluded.devices, heartbeat_at = excluded.heartbeat_at`,
      [id, devices],
    );
    await this.dataSource.query(`DELETE FROM inference_workers WHERE heartbeat_at < now() - interval '1 day'`);
  }
}

function indexOf(device: string): number {
  return device === 'cpu' ? -1 : Number(device.slice('cuda:'.length));
}
