import { setTimeout as delay } from 'node:timers/promises';
import type { CreateGenerationDto, GenerationDto } from '@app/domain';
import { isTerminated } from '@app/domain';
import { CliError } from './run-program';

const pollMs = 150;

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

  /** Asks again and again until the drawing has terminated. */
  async waitFor(id: string, signal: AbortSignal): Promise<GenerationDto> {
    for (;;) {
      const record = (await (await this.request(`/v1/sd/text-to-image/${id}`)).json()) as GenerationDto;
      if (isTerminated(record.status)) return record;
      await delay(pollMs, undefined, { signal });
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
