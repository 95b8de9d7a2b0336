import type { ClientOptions, RequestOptions } from './connection.ts';
import { Connection } from './connection.ts';
import { GenerationFailedError, PromptFailedError } from './errors.ts';
import type { EventOptions } from './events.ts';
import { keysOf, operatorOf } from './operator.ts';
import { pathOf } from './path.ts';
import type {
  Collection,
  CreatedPrompt,
  Finetune,
  FinetuneChange,
  Generation,
  Model,
  NewCollection,
  NewFinetune,
  NewGeneration,
  NewPrompt,
  NewStyle,
  PartialPrompt,
  Prompt,
  PromptStatus,
  QueryOf,
  Style,
  StyleToApply,
  TerminatedPrompt,
  Usage,
  WebhookDelivery,
} from './types.ts';
import type { Verbs } from './verbs.ts';
import { verbsOf } from './verbs.ts';
import type { WaitOptions } from './wait.ts';
import { waitFor, withinTime } from './wait.ts';

export type Client = ReturnType<typeof createClient>;

const generationsPath = '/v1/sd/text-to-image';
const finetunesPath = '/v1/finetunes';
const collectionsPath = '/v1/prompts/collections';

/**
 * A client of one service with one key. Every method throws DarkroomError when the service returns an error or cannot
 * be reached. The promise of a single request also has `withResponse()`, for its headers.
 */
export function createClient(options: ClientOptions) {
  const connection = new Connection(options);
  const verbs = verbsOf(connection);
  const generations = generationsOf(verbs);
  return {
    generations,
    finetunes: finetunesOf(verbs),
    prompts: promptsOf(verbs),
    collections: collectionsOf(verbs),
    styles: stylesOf(verbs),
    keys: keysOf(verbs),
    operator: operatorOf(verbs),
    models: { list: (more?: RequestOptions) => verbs.get<Model[]>('/v1/models', {}, more) },
    usage: {
      list: (query?: QueryOf<'listUsage'>, more?: RequestOptions) => verbs.get<Usage[]>('/v1/usage', query, more),
    },

    /** The bytes of a picture or thumbnail. They come from `baseUrl`, whatever public address its URL has. */
    download: (url: string, more: Pick<RequestOptions, 'signal'> = {}) => connection.download(picturePath(url), more),

    /**
     * Draws pictures and waits for them; `timeoutMs` is the time of both.
     * @throws GenerationFailedError if it failed or was canceled; WaitTimeoutError; the reason of an aborted signal.
     */
    async generate(body: NewGeneration, wait: WaitOptions & RequestOptions = {}): Promise<Generation> {
      let id: string | undefined;
      const draw = async (signal: AbortSignal) => {
        ({ id } = await generations.create(body, { ...wait, signal }));
        return generations.wait(id, { ...wait, signal });
      };
      const generation = await withinTime(() => id, wait, draw);
      if (generation.status !== 'succeeded') throw new GenerationFailedError(generation);
      return generation;
    },
  };
}

/** @throws TypeError if it is another URL. */
function picturePath(url: string): string {
  const path = /\/images\/[\w.-]+$/.exec(url)?.[0];
  if (path === undefined)
    throw new TypeError(`"${url}" is not the URL of a picture of Darkroom, which ends in /images/ and its name.`);
  return path;
}

function generationsOf({ get, post, remove, pages, events }: Verbs) {
  const generations = {
    create: (body: NewGeneration, more?: RequestOptions) => post<Generation>(generationsPath, body, more),
    list: (query?: QueryOf<'listGenerations'>, more?: RequestOptions) =>
      get<Generation[]>(generationsPath, query, more),
    /** The list of Generations as arrays of up to `limit` (100), each its own request. */
    pages: (query?: QueryOf<'listGenerations'>, more?: RequestOptions) =>
      pages<Generation, QueryOf<'listGenerations'>>(generationsPath, query, more),
    get: (id: string, more?: RequestOptions) => get<Generation>(pathOf(generationsPath, id), {}, more),
    cancel: (id: string, more?: RequestOptions) =>
      post<Generation>(pathOf(generationsPath, id, 'cancel'), undefined, more),
    delete: (id: string, more?: RequestOptions) => remove(pathOf(generationsPath, id), more),
    /** Its place in the queue, its steps and its end, as they happen; a stream that breaks is opened again. */
    events: (id: string, options?: EventOptions) => events<Generation>(pathOf(generationsPath, id, 'events'), options),
    /** The log of its webhook's deliveries. */
    deliveries: (id: string, more?: RequestOptions) =>
      get<WebhookDelivery[]>(pathOf(generationsPath, id, 'deliveries'), {}, more),
    redeliver: (id: string, deliveryId: string, more?: RequestOptions) =>
      post<WebhookDelivery>(pathOf(generationsPath, id, 'deliveries', deliveryId, 'redeliver'), undefined, more),
    /** Waits until it has terminated; its `status` says how. */
    wait: (id: string, wait: WaitOptions = {}) =>
      waitFor(id, wait, async (more) => {
        const found = await generations.get(id, more);
        return found.completed_at === null ? undefined : found;
      }),
  };
  return generations;
}

function finetunesOf({ get, post, patch, putBytes, remove, pages }: Verbs) {
  return {
    create: (body: NewFinetune, more?: RequestOptions) => post<Finetune>(finetunesPath, body, more),
    list: (query?: QueryOf<'listFinetunes'>, more?: RequestOptions) => get<Finetune[]>(finetunesPath, query, more),
    pages: (query?: QueryOf<'listFinetunes'>, more?: RequestOptions) =>
      pages<Finetune, QueryOf<'listFinetunes'>>(finetunesPath, query, more),
    get: (id: string, more?: RequestOptions) => get<Finetune>(pathOf(finetunesPath, id), {}, more),
    update: (id: string, change: FinetuneChange, more?: RequestOptions) =>
      patch<Finetune>(pathOf(finetunesPath, id), change, more),
    delete: (id: string, more?: RequestOptions) => remove(pathOf(finetunesPath, id), more),
    /** @param weights a safetensors file: a LoRA or a textual inversion. */
    uploadWeights: (
      id: string,
      weights: Uint8Array | Blob,
      query?: QueryOf<'putFinetuneWeights'>,
      more?: RequestOptions,
    ) => putBytes<Finetune>(pathOf(finetunesPath, id, 'weights'), weights, query, more),
    /** Makes one Prompt per Style; the id of a Collection stands for all of its Styles. */
    applyStyles: (id: string, styles: StyleToApply[], more?: RequestOptions) =>
      post<PartialPrompt[]>(pathOf(finetunesPath, id, 'styles'), styles, more),
  };
}

function promptsOf({ get, post, remove, pages, events }: Verbs) {
  const promptsPath = (finetuneId: string) => pathOf(finetunesPath, finetuneId, 'prompts');
  const prompts = {
    create: (finetuneId: string, body: NewPrompt[], more?: RequestOptions) =>
      post<CreatedPrompt[]>(promptsPath(finetuneId), body, more),
    list: (finetuneId: string, query?: QueryOf<'listPrompts'>, more?: RequestOptions) =>
      get<Prompt[]>(promptsPath(finetuneId), query, more),
    pages: (finetuneId: string, query?: QueryOf<'listPrompts'>, more?: RequestOptions) =>
      pages<Prompt, QueryOf<'listPrompts'>>(promptsPath(finetuneId), query, more),
    get: (finetuneId: string, id: string, more?: RequestOptions) =>
      get<Prompt>(pathOf(promptsPath(finetuneId), id), {}, more),
    /** Its status, its place in the queue and its step. */
    status: (finetuneId: string, id: string, more?: RequestOptions) =>
      get<PromptStatus>(pathOf(promptsPath(finetuneId), id, 'status'), {}, more),
    events: (finetuneId: string, id: string, options?: EventOptions) =>
      events<TerminatedPrompt>(pathOf(promptsPath(finetuneId), id, 'events'), options),
    delete: (finetuneId: string, id: string, more?: RequestOptions) =>
      remove(pathOf(promptsPath(finetuneId), id), more),
    /**
     * Waits until it is drawn.
     * @throws PromptFailedError if it failed or was canceled; DarkroomError also if it was deleted; WaitTimeoutError;
     * the reason of an aborted signal.
     */
    wait: (finetuneId: string, id: string, wait: WaitOptions = {}) =>
      waitFor(id, wait, async (more) => {
        const { completed_at, status } = await prompts.status(finetuneId, id, more);
        if (completed_at === null) return undefined;
        const prompt = await prompts.get(finetuneId, id, more);
        if (status !== 'succeeded') throw new PromptFailedError(prompt, status);
        return prompt;
      }),
  };
  return prompts;
}

function collectionsOf({ get, post, remove, pages }: Verbs) {
  return {
    create: (body: NewCollection, more?: RequestOptions) => post<Collection>(collectionsPath, body, more),
    list: (query?: QueryOf<'listCollections'>, more?: RequestOptions) =>
      get<Collection[]>(collectionsPath, query, more),
    pages: (query?: QueryOf<'listCollections'>, more?: RequestOptions) =>
      pages<Collection, QueryOf<'listCollections'>>(collectionsPath, query, more),
    get: (id: string, more?: RequestOptions) => get<Collection>(pathOf(collectionsPath, id), {}, more),
    delete: (id: string, more?: RequestOptions) => remove(pathOf(collectionsPath, id), more),
  };
}

function stylesOf({ get, post, remove, pages }: Verbs) {
  const stylesPath = (collectionId: string) => pathOf(collectionsPath, collectionId, 'styles');
  return {
    create: (collectionId: string, body: NewStyle[], more?: RequestOptions) =>
      post<Style[]>(stylesPath(collectionId), body, more),
    list: (collectionId: string, query?: QueryOf<'listStyles'>, more?: RequestOptions) =>
      get<Style[]>(stylesPath(collectionId), query, more),
    pages: (collectionId: string, query?: QueryOf<'listStyles'>, more?: RequestOptions) =>
      pages<Style, QueryOf<'listStyles'>>(stylesPath(collectionId), query, more),
    get: (collectionId: string, id: string, more?: RequestOptions) =>
      get<Style>(pathOf(stylesPath(collectionId), id), {}, more),
    delete: (collectionId: string, id: string, more?: RequestOptions) =>
      remove(pathOf(stylesPath(collectionId), id), more),
  };
}
