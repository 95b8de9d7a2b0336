import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Finetune } from '@app/domain';
import type { TestApi, TestKey } from './api';
import { drawTask, makeFinetune, makePrompts } from './factories';
import type { Receiver } from './receiver';
import { smallPicture } from './small-picture';
import { until } from './until';

/** Ids of one resource of each kind, all of one caller. */
export interface World {
  finetune: string;
  prompt: string;
  collection: string;
  style: string;
  generation: string;
  delivery: string;
  promptDelivery: string;
  upload: string;
  /** Of all callers. */
  model: string;
  /** Made by another caller; manageable only with the scope `admin`. */
  apiKey: string;
}

/** An operation of the committed OpenAPI document. */
export interface Operation {
  id: string;
  method: string;
  /** With `{id}` and the like. */
  path: string;
  /** In order. */
  parameters: string[];
}

interface PathsJson {
  paths: Record<string, Record<string, { operationId: string }>>;
}

const { paths } = JSON.parse(readFileSync(join(__dirname, '..', '..', 'openapi.json'), 'utf8')) as PathsJson;

/** Every operation of the service. */
export const operations: readonly Operation[] = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { operationId }]) => ({
    id: operationId,
    method: method.toUpperCase(),
    path,
    parameters: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]),
  })),
);

/** The resource that a path parameter identifies. */
export function resourceOf(path: string, parameter: string): keyof World {
  if (parameter === 'delivery_id' && path.startsWith('/v1/finetunes/')) return 'promptDelivery';
  if (parameter === 'name') return 'model';
  if (parameter !== 'id') return parameter.replace(/_id$/, '') as keyof World;
  if (path.startsWith('/v1/finetunes/')) return 'finetune';
  if (path.startsWith('/v1/keys/')) return 'apiKey';
  if (path.startsWith('/v1/uploads/')) return 'upload';
  if (path.startsWith('/v1/deliveries/')) return 'delivery';
  return path.startsWith('/v1/prompts/collections/') ? 'collection' : 'generation';
}

/** The path with the ids of a world, or those that `idOf` returns. */
export function pathOf(
  { path }: Pick<Operation, 'path'>,
  world: World,
  idOf = (parameter: string) => world[resourceOf(path, parameter)],
): string {
  return path.replace(/\{(\w+)\}/g, (_, parameter: string) => idOf(parameter));
}

/** A Fine-Tune with weights only by its row: nothing can draw with them. */
export async function makeTuned(api: TestApi, key: TestKey): Promise<string> {
  const { id } = await makeFinetune(api, key);
  await giveWeights(api, id);
  return id;
}

/** Gives a Fine-Tune weights by its row alone. */
export async function giveWeights(api: TestApi, id: string): Promise<void> {
  await api.dataSource.manager.update(Finetune, { id }, { weightsKind: 'lora', weightsKey: `weights/${id}/none` });
}

/** A Fine-Tune with a drawn Prompt, a Collection with a Style of it, and a Generation; both webhooks were delivered. */
export async function makeWorld(api: TestApi, key: TestKey, receiver: Receiver): Promise<World> {
  const { id: finetune } = await makeFinetune(api, key);
  const webhook = `${receiver.url}/${key.id}`;
  const [{ id: prompt }] = await makePrompts(api, key, finetune, [{ prompt: 'a robot', webhook }]);
  await drawTask(api, prompt);
  const post = async <T>(path: string, body: unknown) => (await api.request<T>('POST', path, { key, body })).body;
  const styles = [{ id: prompt, name: 'night' }];
  const { id: collection } = await post<{ id: string }>('/v1/prompts/collections', { name: 'scenes', styles });
  const { body: made } = await api.request<{ id: string }[]>('GET', `/v1/prompts/collections/${collection}/styles`, {
    key,
  });
  const { id: generation } = await post<{ id: string }>('/v1/sd/text-to-image', { prompt: 'a red circle', webhook });
  await drawTask(api, generation);
  const deliveryOf = (record: string) =>
    until(async () => {
      const log = await api.request<{ id: string; status: string }[]>('GET', `${record}/deliveries`, { key });
      return log.body.find(({ status }) => status === 'delivered')?.id;
    }, 'the webhook has been told');
  const delivery = await deliveryOf(`/v1/sd/text-to-image/${generation}`);
  const promptDelivery = await deliveryOf(`/v1/finetunes/${finetune}/prompts/${prompt}`);
  const { body: upload } = await api.request<{ id: string }>('POST', '/v1/uploads', { key, raw: await smallPicture() });
  const { id: apiKey } = await api.createKey();
  return {
    ...{ finetune, prompt, collection, style: made[0].id, generation, delivery, promptDelivery, apiKey },
    upload: upload.id,
    model: 'shapes',
  };
}

/** By table, as JSON, without the time of a key's last use. */
export async function allRows(api: TestApi): Promise<Record<string, string[]>> {
  const tables = await api.dataSource.query<{ name: string }[]>(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'migrations' ORDER BY 1`,
  );
  const rows: Record<string, string[]> = {};
  for (const { name } of tables) {
    const found = await api.dataSource.query<{ row: string }[]>(
      `SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM "${name}" t ORDER BY 1`,
    );
    rows[name] = found.map(({ row }) => row);
  }
  return rows;
}
