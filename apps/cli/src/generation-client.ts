import { setTimeout as delay } from 'node:timers/promises';
import type { CreateGenerationDto, GenerationDto } from '@app/domain/http';
import { isTerminated } from '@app/domain';
import { CliError } from './run-program';

/** Between two looks at the record. */
const restMs = 50;

/** Draws pictures over the HTTP interface. */
export class GenerationClient {
  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {}

  async create(body: Partial<CreateGenerationDto>): Promise<GenerationDto> {
    const response = await this.request('/v1/sd/text-to-image', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await response.json()) as GenerationDto;
  }

  /**
   * Follows a drawing to its end: its steps by the stream of events, its end by the record, which is the truth.
   * @returns the record as it terminated.
   */
  async follow(id: string, onStep: (step: number, total: number) => void, signal: AbortSignal): Promise<GenerationDto> {
    for (;;) {
      const record = (await (await this.request(`/v1/sd/text-to-image/${id}`)).json()) as GenerationDto;
      if (isTerminated(record.status)) return record;
      // A stream ends with the drawing; one that breaks is opened again.
      await this.readSteps(id, onStep, signal).catch(() => undefined);
      await delay(restMs, undefined, { signal });
    }
  }

  /** Stops a drawing that is not wanted any more. */
  async cancel(id: string): Promise<void> {
    await this.request(`/v1/sd/text-to-image/${id}/cancel`, { method: 'POST' });
  }

  /** The bytes of a picture. */
  async download(imageUrl: string): Promise<Uint8Array> {
    // What leaves the service bears its public address; this machine reaches it under the local one.
    const { pathname, search } = new URL(imageUrl);
    const response = await this.request(`${pathname}${search}`);
    return new Uint8Array(await response.arrayBuffer());
  }

  private async readSteps(
    id: string,
    onStep: (step: number, total: number) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { body } = await this.request(`/v1/sd/text-to-image/${id}/events`, { signal });
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

  private async request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...(init.headers as Record<string, string>), Authorization: `Bearer ${this.token}` };
    const response = await fetch(`${this.url}${path}`, { ...init, headers }).catch((error: Error) => {
      throw new CliError(
        `Darkroom does not answer at ${this.url}: ${(error.cause as Error | undefined)?.message ?? error.message}`,
      );
    });
    if (response.ok) return response;
    const problem = (await response.json().catch(() => ({}))) as {
      detail?: string;
      errors?: { pointer: string; message: string }[];
    };
    const reasons = problem.errors?.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`);
    throw new CliError(reasons?.join('; ') ?? problem.detail ?? `Darkroom answered ${response.status}.`);
  }
}
