import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ApiKey, newApiKeySecret, newIdentifier, newWebhookSecret } from '@app/domain';
import type { RunningBackEnds } from '../support/back-ends';
import { startBackEnds } from '../support/back-ends';
import type { TestDatabase } from '../support/database';
import { createTestDatabase } from '../support/database';
import type { RunningApi } from '../support/running-api';
import { runApi } from '../support/running-api';
import { until } from '../support/until';

interface Answer {
  status: number;
  connection: string | undefined;
  body: string;
}

describe('An api that is asked to end', () => {
  let database: TestDatabase;
  let dataDir: string;
  let backEnds: RunningBackEnds;
  let token: string;
  const running: RunningApi[] = [];

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
  });

  afterEach(async () => {
    await Promise.all(running.splice(0).map((api) => api.end('SIGKILL')));
  });

  afterAll(async () => {
    await backEnds.close();
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const start = async (): Promise<RunningApi> => {
    const api = await runApi({
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      MODELS_DIR: join(process.cwd(), 'models'),
      MODEL_FALLBACK: 'on',
      ...backEnds.env,
    });
    running.push(api);
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

  /**
   * Sends a request over a connection that was already open when new ones are no longer accepted. Such a connection is served for
   * a second and a half; a machine that is stalled just then may miss it, so another api is tried.
   */
  const meanwhile = async (question: (agent: Agent, url: string) => Promise<Answer>, tries = 3): Promise<Answer> => {
    const api = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await ask(agent, api.url, 'GET', '/health/live')).connection).toBe('keep-alive');
    const ended = api.end('SIGTERM');
    const endedAt = performance.now();
    const fresh = new Agent();
    const isRefused = (): Promise<boolean> =>
      ask(fresh, api.url, 'GET', '/health/live').then(
        () => false,
        () => true,
      );
    await until(isRefused, 'it takes no new connection');
    const isLate = performance.now() - endedAt > 1_000;
    const answer = await question(agent, api.url).catch((error: Error) => error);
    expect(await ended).toBe('SIGTERM');
    agent.destroy();
    if (!(answer instanceof Error)) return answer;
    if (tries === 1 || !isLate) throw answer;
    return meanwhile(question, tries - 1);
  };

  it('loses no request of clients that try another process when the connection is refused', async () => {
    const [first, second] = await Promise.all([start(), start()]);
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

  it('answers on open connections, asks their clients to close them, and reports that it is not ready', async () => {
    const answer = await meanwhile((agent, url) => ask(agent, url, 'GET', '/health/ready'));
    expect([answer.status, answer.connection]).toEqual([503, 'close']);
  });

  it('counts the tokens of a long prompt that arrives meanwhile', async () => {
    const { status, connection } = await meanwhile((agent, url) =>
      ask(agent, url, 'POST', undefined, 'a secret star '.repeat(50)),
    );
    expect([status, connection]).toEqual([201, 'close']);
  });

  it('ends the event streams', async () => {
    const api = await start();
    const agent = new Agent();
    const { id } = JSON.parse((await ask(agent, api.url)).body) as { id: string };
    const stream = await fetch(`${api.url}/v1/sd/text-to-image/${id}/events`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const startedAt = performance.now();
    const whole = stream.text();
    const ended = api.end('SIGTERM');
    expect(await whole).toMatch(/^retry: 2000/);
    expect(await ended).toBe('SIGTERM');
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  });

  it('has logged each request with its ids and no prompt', async () => {
    const api = await start();
    const { id } = JSON.parse((await ask(new Agent(), api.url)).body) as { id: string };
    const line = await until(
      async () => api.lines.find(({ route, method }) => route === '/v1/sd/text-to-image' && method === 'POST'),
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
    expect(JSON.stringify(api.lines)).not.toContain('secret star');
  });
});
