import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ApiKey, newApiKeySecret, newIdentifier, newWebhookSecret } from '@app/domain';
import { type RunningBackEnds, startBackEnds } from '../support/back-ends';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { ServiceProcess } from '../support/service-process';
import { until } from '../support/until';

interface Answer {
  status: number;
  connection: string | undefined;
  body: string;
}

/** Answers, events and last work of an api at its end. */
interface LastWords {
  ready: Answer;
  made: Answer;
  events: string;
  how: number | string;
  tookMs: number;
}

describe('An api that is asked to end', () => {
  let database: TestDatabase;
  let dataDir: string;
  let backEnds: RunningBackEnds;
  let token: string;
  const running: ServiceProcess[] = [];
  let second: ServiceProcess;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataDir = await mkdtemp(join(tmpdir(), 'darkroom-shutdown-'));
    backEnds = await startBackEnds(database, dataDir);
    const secret = newApiKeySecret();
    token = secret.token;
    await database.dataSource.manager.insert(ApiKey, {
      id: newIdentifier(),
      name: 'test',
      prefix: secret.prefix,
      secretHash: secret.secretHash,
      webhookSecret: newWebhookSecret(),
    });
    second = await start();
  });

  afterAll(async () => {
    await Promise.all(running.map((api) => api.end('SIGKILL')));
    await backEnds.close();
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const start = async (): Promise<ServiceProcess> => {
    const api = new ServiceProcess('api', {
      PORT: '0',
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      MODELS_DIR: join(process.cwd(), 'models'),
      MODEL_FALLBACK: 'on',
      ...backEnds.env,
      // Eight clients ask as often as they can.
      RATE_LIMIT_PER_MINUTE: '0',
    });
    running.push(api);
    await api.listening();
    return api;
  };

  const ask = (
    agent: Agent,
    url: string,
    method = 'POST',
    path = '/v1/sd/text-to-image',
    prompt = 'a secret star',
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const request = httpRequest(`${url}${path}`, { agent, method, headers }, (response) => {
        text(response).then(
          (body) => resolve({ status: response.statusCode ?? 0, connection: response.headers.connection, body }),
          reject,
        );
      });
      request.on('error', reject);
      request.end(method === 'POST' ? JSON.stringify({ prompt }) : undefined);
    });

  const streamOf = async ({ url }: ServiceProcess): Promise<Response> => {
    const { id } = JSON.parse((await ask(new Agent(), url)).body) as { id: string };
    return fetch(`${url}/v1/sd/text-to-image/${id}/events`, { headers: { authorization: `Bearer ${token}` } });
  };

  /**
   * Ends an api that has an open event stream, and sends it requests over connections that were already open when new
   * ones are no longer accepted. Such a connection is served for a second and a half; a machine that is stalled just
   * then may miss it, so another api is tried.
   */
  const end = async (api: ServiceProcess, tries = 3): Promise<LastWords> => {
    const agents = [0, 1].map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
    for (const agent of agents)
      expect((await ask(agent, api.url, 'GET', '/health/live')).connection).toBe('keep-alive');
    const events = (await streamOf(api)).text();
    const startedAt = performance.now();
    const ended = api.end('SIGTERM');
    const fresh = new Agent();
    const isRefused = (): Promise<boolean> =>
      ask(fresh, api.url, 'GET', '/health/live').then(
        () => false,
        () => true,
      );
    await until(isRefused, 'it takes no new connection');
    const isLate = performance.now() - startedAt > 1_000;
    const answers = await Promise.all([
      ask(agents[0], api.url, 'GET', '/health/ready'),
      ask(agents[1], api.url, 'POST', undefined, 'a secret star '.repeat(50)),
    ]).catch((error: Error) => error);
    const how = await ended;
    const tookMs = performance.now() - startedAt;
    for (const agent of agents) agent.destroy();
    if (!(answers instanceof Error)) return { ready: answers[0], made: answers[1], events: await events, how, tookMs };
    if (tries === 1 || !isLate) throw answers;
    return end(await start(), tries - 1);
  };

  it('loses no request of clients that try another process when the connection is refused', async () => {
    const first = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    const failures: string[] = [];
    const accepted: string[] = [];
    let url = first.url;
    let isOver = false;
    const client = async (): Promise<void> => {
      while (!isOver) {
        const asked = url;
        try {
          const { status, body } = await ask(agent, asked);
          if (status === 201) accepted.push((JSON.parse(body) as { id: string }).id);
          else failures.push(String(status));
        } catch (error) {
          // The connection failed, so nothing was sent: a load balancer tries the next process.
          if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') url = second.url;
          else failures.push((error as NodeJS.ErrnoException).code ?? String(error));
        }
      }
    };
    const clients = Array.from({ length: 8 }, client);
    await until(async () => accepted.length > 50, 'requests flow');
    expect(await first.end('SIGTERM')).toBe('SIGTERM');
    const before = accepted.length;
    await until(async () => accepted.length > before + 50, 'requests flow to the other');
    isOver = true;
    await Promise.all(clients);
    agent.destroy();
    expect(failures).toEqual([]);
    expect(url).toBe(second.url);
    const [{ count }] = await database.dataSource.query<{ count: number }[]>(
      'SELECT count(*)::integer AS count FROM generations WHERE id = ANY ($1)',
      [accepted],
    );
    expect(count).toBe(accepted.length);
  });

  it('has logged each request with its ids and no prompt', async () => {
    const { id } = JSON.parse((await ask(new Agent(), second.url)).body) as { id: string };
    const line = await until(
      async () => second.lines.find(({ created }) => Array.isArray(created) && created[0] === id),
      'the request is logged',
    );
    expect(line).toMatchObject({
      msg: 'request',
      process: 'api',
      status: 201,
      ms: expect.any(Number) as number,
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      keyId: expect.stringMatching(/^[\w-]{24}$/) as string,
      created: [id],
    });
    expect(JSON.stringify(second.lines)).not.toContain('secret star');
  });

  describe('meanwhile', () => {
    let last: LastWords;

    beforeAll(async () => {
      last = await end(second);
    });

    it('answers on open connections, asks their clients to close them, and reports that it is not ready', () => {
      expect([last.ready.status, last.ready.connection]).toEqual([503, 'close']);
    });

    it('counts the tokens of a long prompt', () => {
      expect([last.made.status, last.made.connection]).toEqual([201, 'close']);
    });

    it('ends the event streams, and then itself', () => {
      expect(last.events).toMatch(/^retry: 2000/);
      expect(last.how).toBe('SIGTERM');
      expect(last.tookMs).toBeLessThan(15_000);
    });
  });
});
