import { setTimeout as delay } from 'node:timers/promises';
import { isTerminated } from '@app/domain';
import type { Client, Generation, NewGeneration } from '../../../packages/client/src';
import { createClient, DarkroomError } from '../../../packages/client/src';
import { CliError } from './run-program';

/** Between two looks at the record. */
const restMs = 50;

/** Draws pictures with a service; what it refuses is told in one sentence. */
export class GenerationClient {
  private readonly client: Client;

  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {
    this.client = createClient({ baseUrl: url, apiKey: token });
  }

  create(body: NewGeneration): Promise<Generation> {
    return plainly(this.client.generations.create(body));
  }

  /**
   * Follows a drawing to its end: its steps by the stream of events, its end by the record, which is the truth.
   * @returns the record as it terminated.
   */
  async follow(id: string, onStep: (step: number, total: number) => void, signal: AbortSignal): Promise<Generation> {
    for (;;) {
      const record = await plainly(this.client.generations.get(id, { signal }));
      if (isTerminated(record.status)) return record;
      // A stream ends with the drawing; one that breaks is opened again.
      await this.readSteps(id, onStep, signal).catch(() => undefined);
      await delay(restMs, undefined, { signal });
    }
  }

  /** Stops a drawing that is not wanted any more. */
  async cancel(id: string): Promise<void> {
    await plainly(this.client.generations.cancel(id));
  }

  /** The bytes of a picture. */
  async download(imageUrl: string): Promise<Uint8Array> {
    // What leaves the service bears its public address; this machine reaches it under the local one.
    const { pathname, search } = new URL(imageUrl);
    const response = await this.open(`${pathname}${search}`);
    return new Uint8Array(await response.arrayBuffer());
  }

  private async readSteps(
    id: string,
    onStep: (step: number, total: number) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { body } = await this.open(`/v1/sd/text-to-image/${id}/events`, signal);
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const data = /^event: progress$[^]*^data: (.*)$/m.exec(event)?.[1];
        if (!data) continue;
        const { step, total } = JSON.parse(data) as { step: number; total: number };
        onStep(step, total);
      }
    }
  }

  /** What is no JSON, which the client has no call for. */
  private async open(path: string, signal?: AbortSignal): Promise<Response> {
    const headers = { Authorization: `Bearer ${this.token}` };
    const response = await fetch(`${this.url}${path}`, { headers, ...(signal && { signal }) });
    if (!response.ok) throw new CliError(`Darkroom answered ${response.status}.`);
    return response;
  }
}

/** @throws CliError that says which field is wrong, where one is. */
async function plainly<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof DarkroomError)) throw error;
    const reasons = error.errors.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`);
    throw new CliError(reasons.join('; ') || error.message);
  }
}
