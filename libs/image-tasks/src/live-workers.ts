import { InferenceWorker, newIdentifier } from '@app/domain';
import type { DataSource } from 'typeorm';

/** Interval between the heartbeats of an inference process. */
export const workerBeatMs = 5_000;

/** A process that is silent for this long counts as gone. */
const silentMs = 3 * workerBeatMs;

/** Which inference processes are up and what they draw on. The database's clock decides, so the machines' clocks need not agree. */
export class LiveWorkers {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Sends a heartbeat now and every `workerBeatMs`, until `leave` is called. A failed beat is reported and the next one still
   * sent: a worker without heartbeats can still draw.
   * @param devices the devices actually used, `cpu`, `webgpu` or `cuda:<n>`.
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
        // A beat in progress would insert the row again.
        await beating;
        await this.dataSource.manager.delete(InferenceWorker, { id });
      },
    };
  }

  /** Devices of all live processes, without duplicates: `cpu` first, then the GPUs by number. */
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
  const named = ['cpu', 'webgpu'].indexOf(device);
  return named < 0 ? Number(device.slice('cuda:'.length)) : named - 2;
}
