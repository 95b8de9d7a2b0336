import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Reply, type RequestOptions, startTestApi, type TestApi, type TestKey } from './api';
import type { ProblemJson } from './factories';
import { type Receiver, startReceiver } from './receiver';
import { makeTuned, makeWorld, type Operation, operations, pathOf, type World } from './world';

/** An error response. */
export type ProblemReply = Reply<ProblemJson>;

/** Keys of every error response. */
export const problemKeys = ['code', 'detail', 'instance', 'status', 'title', 'type'];

const weights = readFileSync(join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));

/** An upload of weights that fit. */
export const upload: RequestOptions = { raw: weights, headers: { 'content-type': 'application/octet-stream' } };

/** The operation of the committed document with an id. */
export const operationOf = (id: string): Operation => operations.find((operation) => operation.id === id)!;

/** Sends requests by the names of the document, with a key that owns one resource of each kind. */
export class ContractCaller {
  private constructor(
    readonly api: TestApi,
    readonly key: TestKey,
    private readonly receiver: Receiver,
    /** For requests that change none of them; with a Fine-Tune that has weights. */
    readonly world: World & { tuned: string },
  ) {}

  static async start(): Promise<ContractCaller> {
    const [api, receiver] = [await startTestApi(), await startReceiver()];
    const key = await api.createKey({ scopes: ['admin'] });
    const world = { ...(await makeWorld(api, key, receiver)), tuned: await makeTuned(api, key) };
    return new ContractCaller(api, key, receiver, world);
  }

  /** For a request that changes them. */
  makeWorld(): Promise<World> {
    return makeWorld(this.api, this.key, this.receiver);
  }

  /** Replaces `{style}` and the like by ids. */
  filled<T>(value: T, ids: object = this.world): T {
    const known = ids as Partial<Record<string, string>>;
    const text = JSON.stringify(value).replace(/\{(\w+)\}/g, (whole, name: string) => known[name] ?? whole);
    return JSON.parse(text) as T;
  }

  send<T = ProblemJson>(id: string, options: RequestOptions, query = '', ids: World = this.world): Promise<Reply<T>> {
    const operation = operationOf(id);
    return this.api.request<T>(operation.method, pathOf(operation, ids) + query, { key: this.key, ...options });
  }

  async close(): Promise<void> {
    await this.api.close();
    await this.receiver.close();
  }
}
