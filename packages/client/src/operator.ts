import type { RequestOptions } from './connection.ts';
import { pathOf } from './path.ts';
import type {
  CreatedKey,
  Failure,
  Key,
  KeyChange,
  KeyDelivery,
  KeyRotation,
  NewKey,
  QueryOf,
  Queue,
  RotatedKey,
  RotatedWebhookSecret,
  Storage,
  Usage,
  Worker,
} from './types.ts';
import type { Verbs } from './verbs.ts';

const keysPath = '/v1/keys';

/** For keys with the scope `admin`, all but `current`. */
export function keysOf({ get, post, patch, remove, pages }: Verbs) {
  return {
    create: (body: NewKey, more?: RequestOptions) => post<CreatedKey>(keysPath, body, more),
    list: (query?: QueryOf<'listKeys'>, more?: RequestOptions) => get<Key[]>(keysPath, query, more),
    pages: (query?: QueryOf<'listKeys'>, more?: RequestOptions) =>
      pages<Key, QueryOf<'listKeys'>>(keysPath, query, more),
    get: (id: string, more?: RequestOptions) => get<Key>(pathOf(keysPath, id), undefined, more),
    /** The key of this client. */
    current: (more?: RequestOptions) => get<Key>('/v1/key', {}, more),
    usage: (id: string, query?: QueryOf<'listKeyUsage'>, more?: RequestOptions) =>
      get<Usage[]>(pathOf(keysPath, id, 'usage'), query, more),
    update: (id: string, change: KeyChange, more?: RequestOptions) => patch<Key>(pathOf(keysPath, id), change, more),
    rotate: (id: string, rotation: KeyRotation = {}, more?: RequestOptions) =>
      post<RotatedKey>(pathOf(keysPath, id, 'rotate'), rotation, more),
    rotateWebhookSecret: (id: string, rotation: KeyRotation = {}, more?: RequestOptions) =>
      post<RotatedWebhookSecret>(pathOf(keysPath, id, 'rotate-webhook-secret'), rotation, more),
    revoke: (id: string, more?: RequestOptions) => remove(pathOf(keysPath, id), more),
  };
}

/** What the service is at, over all keys, for those with the scope `admin`. */
export function operatorOf({ get, post, pages }: Verbs) {
  const [failuresPath, deliveriesPath] = ['/v1/failures', '/v1/deliveries'];
  return {
    queue: (more?: RequestOptions) => get<Queue>('/v1/queue', {}, more),
    workers: (more?: RequestOptions) => get<Worker[]>('/v1/workers', {}, more),
    storage: (more?: RequestOptions) => get<Storage>('/v1/storage', {}, more),
    failures: (query?: QueryOf<'listFailures'>, more?: RequestOptions) =>
      pages<Failure, QueryOf<'listFailures'>>(failuresPath, query, more),
    deliveries: (query?: QueryOf<'listKeyDeliveries'>, more?: RequestOptions) =>
      pages<KeyDelivery, QueryOf<'listKeyDeliveries'>>(deliveriesPath, query, more),
    redeliver: (id: string, more?: RequestOptions) =>
      post<KeyDelivery>(pathOf(deliveriesPath, id, 'redeliver'), undefined, more),
  };
}
