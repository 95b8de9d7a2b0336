import { type ClientOptions, Connection, type RequestOptions } from './connection.ts';
import { GenerationFailedError, PromptFailedError } from './errors.ts';
import type { EventOptions } from './events.ts';
import { finetunesOf, finetunesPath } from './finetunes.ts';
import { recordsOf } from './records.ts';
import { pathOf, type Verbs, verbsOf } from './requests.ts';
import type * as api from './types.ts';
import type { QueryOf } from './types.ts';
import { makeAndWait, type MakeOptions, waitFor, type WaitOptions } from './wait.ts';

export type Client = ReturnType<typeof createClient>;

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
    /** Generations and Prompts of all Fine-Tunes together, in short. */
    drawings: {
      list: (query?: QueryOf<'listDrawings'>, more?: RequestOptions) =>
        verbs.get<api.Drawing[]>('/v1/drawings', query, more),
      pages: (query?: QueryOf<'listDrawings'>, more?: RequestOptions) =>
        verbs.pages<api.Drawing, QueryOf<'listDrawings'>>('/v1/drawings', query, more),
    },
    collections: collectionsOf(verbs),
    styles: stylesOf(verbs),
    uploads: uploadsOf(verbs),
    /** What a picture says of itself, whether its credentials hold, and which of your records made it. */
    verify: async (picture: File, more?: RequestOptions) =>
      verbs.postBytes<api.Verification>('/v1/verify', await wholeOf(picture), more),
    keys: keysOf(verbs),
    operator: operatorOf(verbs),
    models: { list: (more?: RequestOptions) => verbs.get<api.Model[]>('/v1/models', {}, more) },
    usage: {
      list: (query?: QueryOf<'listUsage'>, more?: RequestOptions) => verbs.get<api.Usage[]>('/v1/usage', query, more),
    },

    /** The bytes of a picture or thumbnail. They come from `baseUrl`, whatever public address its URL has. */
    download: (url: string, more: Pick<RequestOptions, 'signal'> = {}) => connection.download(picturePath(url), more),

    /**
     * Draws pictures and waits for them; `timeoutMs` is the time of both.
     * @throws GenerationFailedError if it failed or was canceled; WaitTimeoutError; the reason of an aborted signal.
     */
    async generate(body: api.NewGeneration, options: MakeOptions<api.Generation> = {}): Promise<api.Generation> {
      const generation = await makeAndWait(generations, body, options);
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

function generationsOf(verbs: Verbs) {
  const { get, post, events } = verbs;
  const path = '/v1/sd/text-to-image';
  const records = recordsOf<api.Generation, 'listGenerations'>(verbs, path);
  return {
    ...records,
    create: (body: api.NewGeneration, more?: RequestOptions) => post<api.Generation>(path, body, more),
    cancel: (id: string, more?: RequestOptions) => post<api.Generation>(pathOf(path, id, 'cancel'), undefined, more),
    /** Its place in the queue, its steps and its end, as they happen; a stream that breaks is opened again. */
    events: (id: string, options?: EventOptions) => events<api.Generation>(pathOf(path, id, 'events'), options),
    /** The log of its webhook's deliveries. */
    deliveries: (id: string, more?: RequestOptions) =>
      get<api.WebhookDelivery[]>(pathOf(path, id, 'deliveries'), {}, more),
    redeliver: (id: string, deliveryId: string, more?: RequestOptions) =>
      post<api.WebhookDelivery>(pathOf(path, id, 'deliveries', deliveryId, 'redeliver'), undefined, more),
    /** Waits until it has terminated; its `status` says how. */
    wait: (id: string, wait: WaitOptions = {}) =>
      waitFor(id, wait, async (more) => {
        const found = await records.get(id, more);
        return found.completed_at === null ? undefined : found;
      }),
  };
}

function promptsOf(verbs: Verbs) {
  const { get, post, events } = verbs;
  const pathIn = (finetuneId: string) => pathOf(finetunesPath, finetuneId, 'prompts');
  const of = (finetuneId: string) => recordsOf<api.Prompt, 'listPrompts'>(verbs, pathIn(finetuneId));
  const status = (finetuneId: string, id: string, more?: RequestOptions) =>
    get<api.PromptStatus>(pathOf(pathIn(finetuneId), id, 'status'), {}, more);
  return {
    create: (finetuneId: string, body: api.NewPrompt[], more?: RequestOptions) =>
      post<api.CreatedPrompt[]>(pathIn(finetuneId), body, more),
    list: (finetuneId: string, query?: QueryOf<'listPrompts'>, more?: RequestOptions) =>
      of(finetuneId).list(query, more),
    pages: (finetuneId: string, query?: QueryOf<'listPrompts'>, more?: RequestOptions) =>
      of(finetuneId).pages(query, more),
    get: (finetuneId: string, id: string, more?: RequestOptions) => of(finetuneId).get(id, more),
    /** Its status, its place in the queue and its step. */
    status,
    /** Its record, with its status. */
    cancel: (finetuneId: string, id: string, more?: RequestOptions) =>
      post<api.TerminatedPrompt>(pathOf(pathIn(finetuneId), id, 'cancel'), undefined, more),
    /** The log of its webhook's deliveries. */
    deliveries: (finetuneId: string, id: string, more?: RequestOptions) =>
      get<api.WebhookDelivery[]>(pathOf(pathIn(finetuneId), id, 'deliveries'), {}, more),
    redeliver: (finetuneId: string, id: string, deliveryId: string, more?: RequestOptions) =>
      post<api.WebhookDelivery>(pathOf(pathIn(finetuneId), id, 'deliveries', deliveryId, 'redeliver'), undefined, more),
    events: (finetuneId: string, id: string, options?: EventOptions) =>
      events<api.TerminatedPrompt>(pathOf(pathIn(finetuneId), id, 'events'), options),
    delete: (finetuneId: string, id: string, more?: RequestOptions) => of(finetuneId).delete(id, more),
    /**
     * Waits until it is drawn.
     * @throws PromptFailedError if it failed or was canceled; DarkroomError also if it was deleted; WaitTimeoutError;
     * the reason of an aborted signal.
     */
    wait: (finetuneId: string, id: string, wait: WaitOptions = {}) =>
      waitFor(id, wait, async (more) => {
        const now = await status(finetuneId, id, more);
        if (now.completed_at === null) return undefined;
        const prompt = await of(finetuneId).get(id, more);
        if (now.status !== 'succeeded') throw new PromptFailedError(prompt, now.status);
        return prompt;
      }),
  };
}

function collectionsOf(verbs: Verbs) {
  return {
    ...recordsOf<api.Collection, 'listCollections'>(verbs, collectionsPath),
    create: (body: api.NewCollection, more?: RequestOptions) => verbs.post<api.Collection>(collectionsPath, body, more),
  };
}

function stylesOf(verbs: Verbs) {
  const pathIn = (collectionId: string) => pathOf(collectionsPath, collectionId, 'styles');
  const of = (collectionId: string) => recordsOf<api.Style, 'listStyles'>(verbs, pathIn(collectionId));
  return {
    create: (collectionId: string, body: api.NewStyle[], more?: RequestOptions) =>
      verbs.post<api.Style[]>(pathIn(collectionId), body, more),
    list: (collectionId: string, query?: QueryOf<'listStyles'>, more?: RequestOptions) =>
      of(collectionId).list(query, more),
    pages: (collectionId: string, query?: QueryOf<'listStyles'>, more?: RequestOptions) =>
      of(collectionId).pages(query, more),
    get: (collectionId: string, id: string, more?: RequestOptions) => of(collectionId).get(id, more),
    delete: (collectionId: string, id: string, more?: RequestOptions) => of(collectionId).delete(id, more),
  };
}

/** A file; a stream is read to its end before it is sent, so that it can be sent again. */
type File = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

function uploadsOf(verbs: Verbs) {
  const path = '/v1/uploads';
  return {
    ...recordsOf<api.Upload, 'listUploads'>(verbs, path),
    /** @param picture a PNG, JPEG or WebP: a file, a Buffer, a Blob or a stream. Its `url` is what requests name. */
    create: async (picture: File, more?: RequestOptions) =>
      verbs.postBytes<api.Upload>(path, await wholeOf(picture), more),
  };
}

async function wholeOf(file: File): Promise<Uint8Array | Blob> {
  if (file instanceof Uint8Array || file instanceof Blob) return file;
  if (file instanceof ReadableStream) return new Response(file).blob();
  const chunks: Uint8Array[] = [];
  for await (const chunk of file) chunks.push(chunk);
  return new Blob(chunks as Uint8Array<ArrayBuffer>[]);
}

/** For keys with the scope `admin`, all but `current`. */
function keysOf(verbs: Verbs) {
  const { get, post, patch } = verbs;
  const path = '/v1/keys';
  const { delete: revoke, ...records } = recordsOf<api.Key, 'listKeys'>(verbs, path);
  return {
    ...records,
    create: (body: api.NewKey, more?: RequestOptions) => post<api.CreatedKey>(path, body, more),
    /** The key of this client. */
    current: (more?: RequestOptions) => get<api.Key>('/v1/key', {}, more),
    usage: (id: string, query?: QueryOf<'listKeyUsage'>, more?: RequestOptions) =>
      get<api.Usage[]>(pathOf(path, id, 'usage'), query, more),
    update: (id: string, change: api.KeyChange, more?: RequestOptions) =>
      patch<api.Key>(pathOf(path, id), change, more),
    rotate: (id: string, rotation: api.KeyRotation = {}, more?: RequestOptions) =>
      post<api.RotatedKey>(pathOf(path, id, 'rotate'), rotation, more),
    rotateWebhookSecret: (id: string, rotation: api.KeyRotation = {}, more?: RequestOptions) =>
      post<api.RotatedWebhookSecret>(pathOf(path, id, 'rotate-webhook-secret'), rotation, more),
    revoke,
  };
}

/** State of the service, over all keys, for those with the scope `admin`. */
function operatorOf({ get, post, pages }: Verbs) {
  const [failuresPath, deliveriesPath] = ['/v1/failures', '/v1/deliveries'];
  return {
    queue: (more?: RequestOptions) => get<api.Queue>('/v1/queue', {}, more),
    workers: (more?: RequestOptions) => get<api.Worker[]>('/v1/workers', {}, more),
    storage: (more?: RequestOptions) => get<api.Storage>('/v1/storage', {}, more),
    activity: (query?: QueryOf<'listActivity'>, more?: RequestOptions) =>
      get<api.Activity[]>('/v1/activity', query, more),
    failures: (query?: QueryOf<'listFailures'>, more?: RequestOptions) =>
      pages<api.Failure, QueryOf<'listFailures'>>(failuresPath, query, more),
    deliveries: (query?: QueryOf<'listKeyDeliveries'>, more?: RequestOptions) =>
      pages<api.KeyDelivery, QueryOf<'listKeyDeliveries'>>(deliveriesPath, query, more),
    redeliver: (id: string, more?: RequestOptions) =>
      post<api.KeyDelivery>(pathOf(deliveriesPath, id, 'redeliver'), undefined, more),
  };
}
