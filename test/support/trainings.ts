import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TestKey } from './api';
import type { FinetuneJson } from './factories';
import type { TestService } from './service';
import { until } from './until';

/** A Fine-Tune that is trained, in a response. */
export interface TrainedJson extends FinetuneJson {
  training: { images: number; steps: number; step: number; completed_at: string | null; compute_seconds: number };
  prompts: string[];
}

const folder = resolve('docs', 'robot');

/** A training has the lowest priority: beside other tests it takes many times as long as alone. */
const patienceMs = 540_000;

/** Four pictures of a robot. */
export const robotPictures = (): Buffer[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.png'))
    .slice(0, 4)
    .map((name) => readFileSync(join(folder, name)));

/** @returns their URLs */
async function uploadAll(
  service: Pick<TestService, 'request'>,
  key: TestKey,
  pictures: readonly Buffer[],
): Promise<string[]> {
  const urls: string[] = [];
  for (const raw of pictures) {
    const reply = await service.request<{ url: string }>('POST', '/v1/uploads', { key, raw });
    if (reply.status !== 201) throw new Error(`The picture was refused: ${reply.text}`);
    urls.push(reply.body.url);
  }
  return urls;
}

/** Processes of one worker, or of all, that train. */
export function trainingProcesses(worker?: number): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
      const [, , parent] = /^.*\) (\S) (\d+)/.exec(readFileSync(`/proc/${entry}/stat`, 'utf8'))!;
      return command.includes('training-process.js') && (worker === undefined || Number(parent) === worker)
        ? [Number(entry)]
        : [];
    } catch {
      return [];
    }
  });
}

/** The Fine-Tunes of a key, and its requests. */
export class Trainer {
  constructor(
    private readonly service: Pick<TestService, 'request' | 'baseUrl'>,
    readonly key: TestKey,
  ) {}

  async train(body: { images_url: readonly string[]; [field: string]: unknown }): Promise<TrainedJson> {
    const whole = { name: 'robot', model: 'shapes', seed: 7, ...body };
    const reply = await this.service.request<TrainedJson>('POST', '/v1/finetunes', { key: this.key, body: whole });
    if (reply.status !== 201) throw new Error(`The training was refused: ${reply.text}`);
    return reply.body;
  }

  upload(pictures: readonly Buffer[] = robotPictures()): Promise<string[]> {
    return uploadAll(this.service, this.key, pictures);
  }

  async get<T = TrainedJson>(id: string, more = ''): Promise<T> {
    return (await this.service.request<T>('GET', `/v1/finetunes/${id}${more}`, { key: this.key })).body;
  }

  async post<T = TrainedJson>(id: string, more: string, body?: unknown): Promise<T> {
    return (await this.service.request<T>('POST', `/v1/finetunes/${id}/${more}`, { key: this.key, body })).body;
  }

  /** Waits for the status. */
  has(id: string, status: string): Promise<TrainedJson> {
    return until(
      async () => {
        const found = await this.get(id);
        if (found.status === status) return found;
        if (found.training.completed_at) throw new Error(`The training ${found.status}: ${found.error_message}`);
        return undefined;
      },
      `the Fine-Tune is ${status}`,
      patienceMs,
    );
  }

  /** Waits for the step. */
  reached(id: string, step: number): Promise<TrainedJson> {
    return until(
      async () => {
        const found = await this.get(id);
        return found.training.step >= step && found;
      },
      `step ${step} is done`,
      patienceMs,
    );
  }

  async weights(id: string): Promise<Buffer> {
    const headers = { authorization: `Bearer ${this.key.token}` };
    const response = await fetch(`${this.service.baseUrl}/v1/finetunes/${id}/weights`, { headers });
    return Buffer.from(await response.arrayBuffer());
  }
}
