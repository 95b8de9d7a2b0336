import { setTimeout as delay } from 'node:timers/promises';
import { isTerminated } from '@app/domain';
import type { Client, Generation, NewGeneration } from '../../../packages/client/src';
import { createClient, DarkroomError } from '../../../packages/client/src';
import { CliError } from './run-program';

/** Wait between two polls of the record. */
const pollMs = 50;

/** Draws pictures with a service; errors become one sentence. */
export class GenerationClient {
  private readonly client: Client;

  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {
    this.client = createClient({ baseUrl: url, apiKey: token });
  }

  create(body: NewGeneration): Promise<Generation> {
    return withCliErrors(this.client.generations.create(body));
  }

  /**
   * Follows a drawing to its end: the steps by the event stream, the end by the record, which is the source of truth.
   * @returns the terminated record.
   */
  async follow(id: string, onStep: (step: number, total: number) => void, signal: AbortSignal): Promise<Generation> {
    for (;;) {
      const record = await withCliErrors(this.client.generations.get(id, { signal }));
      if (isTerminated(record.status)) return record;
      // The stream ends with the drawing; if it breaks, it is opened again.
      await this.readSteps(id, onStep, signal).catch(() => undefined);
      await delay(pollMs, undefined, { signal });
    }
  }

  /** Cancels a drawing that is no longer wanted. */
  async cancel(id: string): Promise<void> {
    await withCliErrors(this.client.generations.cancel(id));
  }

  /** The bytes of a picture. */
  async download(imageUrl: string): Promise<Uint8Array> {
    // Image URLs have the service's public address; this machine reaches it at the local one.
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

  /** A request with a response other than JSON, for which the client has no method. */
  private async open(path: string, signal?: AbortSignal): Promise<Response> {
    const headers = { Authorization: `Bearer ${this.token}` };
    const response = await fetch(`${this.url}${path}`, { headers, ...(signal && { signal }) });
    if (!response.ok) throw new CliError(`Darkroom answered ${response.status}.`);
    return response;
  }
}

/** @throws CliError that names the invalid field, if there is one. */
async function withCliErrors<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof DarkroomError)) throw error;
    const reasons = error.errors.map(({ pointer = '', message }) => `${pointer.slice(1)} ${message}`.trim());
    throw new CliError(reasons.join('; ') || error.message);
  }
}
