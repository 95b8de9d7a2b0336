import type { Client, Generation, NewGeneration } from '../../../packages/client/src';
import { createClient, DarkroomError } from '../../../packages/client/src';
import { CliError } from './run-program';

/** Draws pictures with a service; errors become one line. */
export class GenerationClient {
  private readonly client: Client;

  constructor(url: string, token: string) {
    this.client = createClient({ baseUrl: url, apiKey: token });
  }

  create(body: NewGeneration): Promise<Generation> {
    return withCliErrors(
      this.client.generations.create(body).catch(async (error: unknown) => {
        if (!(error instanceof DarkroomError) || error.code !== 'ModelNotInstalled') throw error;
        throw new CliError(
          `The request ${error.errors[0].message}. Name one of these with --model: ${await this.drawable()}.`,
        );
      }),
    );
  }

  /** Names of the models that can be drawn with. */
  private async drawable(): Promise<string> {
    const models = await this.client.models.list();
    return models
      .flatMap(({ name, problem, stands_in_for: others }) => (problem === null ? [name, ...others] : []))
      .join(', ');
  }

  /**
   * Follows a drawing to its end.
   * @returns the terminated record.
   */
  follow(id: string, onStep: (step: number, total: number) => void, signal: AbortSignal): Promise<Generation> {
    const toItsEnd = async () => {
      for await (const { event, data } of this.client.generations.events(id, { signal })) {
        if (event === 'progress') onStep(data.step, data.total);
        if (event === 'terminated') return data;
      }
      throw new CliError(`The Generation ${id} was deleted.`);
    };
    return withCliErrors(toItsEnd());
  }

  /** Cancels a drawing that is no longer wanted. */
  async cancel(id: string): Promise<void> {
    await withCliErrors(this.client.generations.cancel(id));
  }

  /** The bytes of a picture. */
  download(url: string): Promise<Uint8Array> {
    return withCliErrors(this.client.download(url));
  }
}

/** @throws CliError in a sentence or two, which names the invalid fields, if there are some */
async function withCliErrors<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof DarkroomError)) throw error;
    const reasons = error.errors.map(({ pointer = '', message }) => `${pointer.slice(1)} ${message}`.trim());
    throw new CliError(reasons.length > 0 ? `The service refuses it: ${reasons.join('; ')}.` : error.message);
  }
}
