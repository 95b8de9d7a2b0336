import { Collection, ImageTask, newIdentifier, Style } from '@app/domain';
import type { Finetune } from '@app/domain';
import type { EntityManager } from 'typeorm';
import type { Reply, TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { insertFinetune, insertPrompt } from '../support/prompt-rows';
import { until } from '../support/until';

interface Resource {
  id: string;
  name: string;
  thumbnail: string | null;
}

interface Problem {
  code: string;
  instance: string;
}

const base = '/v1/prompts/collections';

describe('Collections and Styles of several callers', () => {
  let api: TestApi;
  let key: TestKey;
  let finetune: Finetune;

  beforeAll(async () => {
    api = await startTestApi();
  });

  beforeEach(async () => {
    key = await api.createKey();
    finetune = await insertFinetune(api.dataSource.manager, key.id);
  });

  afterAll(() => api.close());

  const prompt = () => insertPrompt(api.dataSource.manager, finetune);
  const call = <T = Resource>(method: string, path = '', body?: unknown, as = key): Promise<Reply<T>> =>
    api.request<T>(method, `${base}${path}`, { key: as, body });
  const create = (styles: object[] = []) => call('POST', '', { name: 'Night scenes', styles });

  describe('a Style that is made while its Collection or Prompt is deleted', () => {
    /** Keeps the transaction of `taking` open until the request waits for it. */
    async function during(
      taking: (manager: EntityManager) => Promise<unknown>,
      request: () => Promise<Reply<Problem>>,
    ) {
      let reply: Promise<Reply<Problem>> | undefined;
      await api.dataSource.transaction(async (manager) => {
        await taking(manager);
        reply = request();
        await until(async () => {
          const waiting = await api.dataSource.query<unknown[]>(
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          );
          return waiting.length > 0;
        }, 'the request waits for the deletion');
      });
      return reply!;
    }

    it('is refused when its Collection is deleted', async () => {
      const { body: collection } = await create();
      const source = await prompt();
      const reply = await during(
        (manager) => manager.delete(Collection, { id: collection.id }),
        () => call<Problem>('POST', `/${collection.id}/styles`, [{ id: source.id, name: 'x' }]),
      );
      expect([reply.status, reply.body.code]).toEqual([404, 'CollectionNotFound']);
    });

    it('is refused when its Prompt is deleted', async () => {
      const source = await prompt();
      const reply = await during(
        (manager) => manager.delete(ImageTask, { id: source.id }),
        () => call<Problem>('POST', '', { name: 'x', styles: [{ id: source.id, name: 'x' }] }),
      );
      expect([reply.status, reply.body.code]).toEqual([422, 'PromptNotFound']);
      expect(await api.dataSource.manager.countBy(Collection, { ownerId: key.id })).toBe(0);
    });
  });

  it("returns the same for another caller's ids as for unknown ones, and changes nothing", async () => {
    const source = await prompt();
    const { body: collection } = await create([{ id: source.id, name: 'mine' }]);
    const [style] = (await call<Resource[]>('GET', `/${collection.id}/styles`)).body;
    const stranger = await api.createKey();
    const theirs = await insertFinetune(api.dataSource.manager, stranger.id);
    const body = [{ id: (await insertPrompt(api.dataSource.manager, theirs)).id, name: 'x' }];
    const normalized = (reply: Reply<Problem>) => [
      reply.status,
      reply.text.replace(reply.body.instance, ''),
      reply.headers.get('content-type'),
    ];
    for (const unknown of [newIdentifier(), 'x', '%00', "'; --", 'a'.repeat(500)])
      for (const [method, path, sent] of [
        ['GET', (id: string) => `/${id}`],
        ['DELETE', (id: string) => `/${id}`],
        ['GET', (id: string) => `/${id}/styles`],
        ['POST', (id: string) => `/${id}/styles`, body],
        ['GET', (id: string) => `/${id}/styles/${style.id}`],
        ['DELETE', (id: string) => `/${id}/styles/${style.id}`],
      ] as const) {
        const foreign = await call<Problem>(method, path(collection.id), sent, stranger);
        expect(foreign.status).toBe(404);
        expect(normalized(foreign)).toEqual(normalized(await call<Problem>(method, path(unknown), sent, stranger)));
      }
    const other = (await call('POST', '', { name: 'theirs', styles: [] }, stranger)).body;
    for (const method of ['GET', 'DELETE']) {
      const foreign = await call<Problem>(method, `/${other.id}/styles/${style.id}`, undefined, stranger);
      const unknown = await call<Problem>(method, `/${other.id}/styles/${newIdentifier()}`, undefined, stranger);
      expect(normalized(foreign)).toEqual(normalized(unknown));
      expect(foreign.body.code).toBe('StyleNotFound');
    }
    expect((await call('GET', `/${collection.id}`)).body).toEqual(collection);
    expect(await api.dataSource.manager.findOneBy(Style, { id: style.id })).toMatchObject({
      ownerId: key.id,
      name: 'mine',
    });
  });

  it('needs a key on every route', async () => {
    for (const [method, path] of [
      ['POST', ''],
      ['GET', ''],
      ['GET', '/x'],
      ['DELETE', '/x'],
      ['POST', '/x/styles'],
      ['GET', '/x/styles'],
      ['GET', '/x/styles/y'],
      ['DELETE', '/x/styles/y'],
    ])
      expect((await api.request(method, `${base}${path}`)).status).toBe(401);
  });
});
