import {
  type BrokenModel,
  type EngineReport,
  InferenceWorker,
  newIdentifier,
  type SigningReport,
  type SigningState,
} from '@app/domain';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Interval between the heartbeats of an inference process. */
export const workerBeatMs = 5_000;

/** A change of engines or models is written this soon between two heartbeats. */
const reportMs = 1_000;

const workerGoneMs = 3 * workerBeatMs;

/** Devices and models of an inference process. */
export interface WorkerAbilities {
  /** The devices actually used, `cpu`, `webgpu` or `cuda:<n>`. */
  devices: readonly string[];
  /** Those that it can draw now. */
  models: readonly string[];
  engines?: readonly EngineReport[];
  /** Those that its engines have refused. */
  broken?: readonly BrokenModel[];
  /** Undefined or null where its pictures get no Content Credentials. */
  credentials?: SigningReport | null;
}

/** An inference process that is up. */
export interface Presence {
  /** Whether it has been up longest of all live processes: one task for all falls to that one. */
  isEldest(): Promise<boolean>;
  leave(): Promise<void>;
}

/** Abilities of a live process, as it says them. */
export type LiveWorker = Pick<InferenceWorker, 'devices' | 'models' | 'broken' | 'credentials'>;

/**
 * Which inference processes are up and what they can draw. The database's clock decides: the machines' clocks need not
 * agree.
 */
@Injectable()
export class LiveWorkers {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Sends a heartbeat now and every `workerBeatMs` until `leave` is called, and in between the state of its engines if
   * that has changed. A failed beat is reported and the next one still sent: a worker without heartbeats can still
   * draw.
   * @param abilities asked for before each heartbeat
   */
  async join(abilities: () => WorkerAbilities, onError: (error: unknown) => void): Promise<Presence> {
    const id = newIdentifier();
    let written = '';
    let writing: Promise<void> = Promise.resolve();
    const write = (isBeat: boolean): void => {
      const now = abilities();
      const { models, engines = null, broken = null, credentials = null } = now;
      const state = JSON.stringify({ models, engines, broken, credentials });
      if (!isBeat && state === written) return;
      written = state;
      // One after the other, so that an older state is never written last.
      writing = writing.then(() => this.write(id, now, isBeat)).catch(onError);
    };
    write(true);
    await writing;
    const timers = [setInterval(() => write(true), workerBeatMs), setInterval(() => write(false), reportMs)];
    for (const timer of timers) timer.unref();
    return {
      isEldest: async () => (await this.eldest()) === id,
      leave: async () => {
        for (const timer of timers) clearInterval(timer);
        // A beat in progress would insert the row again.
        await writing;
        await this.dataSource.manager.delete(InferenceWorker, { id });
      },
    };
  }

  all(): Promise<LiveWorker[]> {
    return this.dataSource.query(
      `SELECT devices, models, broken, credentials FROM inference_workers WHERE heartbeat_at > now() - $1 * interval '1 ms'`,
      [workerGoneMs],
    );
  }

  /** The live processes with all that they say of themselves, the newest first. */
  reports(most: number): Promise<InferenceWorker[]> {
    return this.dataSource.manager
      .createQueryBuilder(InferenceWorker, 'worker')
      .where(`worker.heartbeat_at > now() - :workerGoneMs * interval '1 ms'`, { workerGoneMs })
      .orderBy({ 'worker.startedAt': 'DESC', 'worker.id': 'DESC' })
      .limit(most)
      .getMany();
  }

  private async eldest(): Promise<string | undefined> {
    const [found] = await this.dataSource.query<{ id: string }[]>(
      `SELECT id FROM inference_workers WHERE heartbeat_at > now() - $1 * interval '1 ms'
       ORDER BY started_at, id LIMIT 1`,
      [workerGoneMs],
    );
    return found?.id;
  }

  private async write(
    id: string,
    { devices, models, engines, broken, credentials }: WorkerAbilities,
    isBeat: boolean,
  ): Promise<void> {
    await this.dataSource.query(
      `INSERT INTO inference_workers (id, devices, models, engines, broken, credentials, started_at, heartbeat_at)
       VALUES ($1, $2, $3, $4, $5, $6, now(), now())
       ON CONFLICT (id) DO UPDATE SET devices = excluded.devices, models = excluded.models, engines = excluded.engines,
         broken = excluded.broken, credentials = excluded.credentials, heartbeat_at = excluded.heartbeat_at`,
      [id, devices, models, ...[engines, broken, credentials].map((each) => JSON.stringify(each ?? null))],
    );
    if (!isBeat) return;
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

/** Whether processes sign what they draw. */
export function signingOf(workers: readonly Pick<LiveWorker, 'credentials'>[]): SigningState {
  const signing = workers.flatMap(({ credentials }) => credentials ?? []);
  if (signing.some(({ problem }) => problem !== null)) return 'failing';
  if (signing.length === 0) return 'off';
  return signing.length === workers.length ? 'on' : 'partly';
}

/**
 * The devices of these processes on which a model is drawn, without duplicates: `cpu` first, CUDA
 * devices by number last.
 */
export function devicesFor({ name }: { name: string }, workers: readonly LiveWorker[]): string[] {
  const able = workers.filter(({ models }) => models.includes(name)).flatMap(({ devices }) => devices);
  return [...new Set(able)].sort((a, b) => indexOf(a) - indexOf(b));
}

/**
 * Why a model cannot be drawn with: a live process has refused its files, and none is left that can draw it.
 * @param model `key` as `modelKey`
 */
export function problemFor(
  { name, key }: { name: string; key: string },
  workers: readonly LiveWorker[],
): string | undefined {
  if (workers.some(({ models }) => models.includes(name))) return undefined;
  const refused = workers.flatMap(({ broken }) => broken ?? []);
  return refused.find((model) => model.key === key)?.problem;
}

function indexOf(device: string): number {
  const named = ['cpu', 'webgpu'].indexOf(device);
  return named < 0 ? Number(device.slice('cuda:'.length)) : named - 2;
}
