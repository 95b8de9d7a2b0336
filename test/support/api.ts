import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, loadConfig } from '@app/config';
import { PictureVerifier } from '@app/credentials';
import { ApiKey, newApiKeySecret, newIdentifier, newWebhookSecret } from '@app/domain';
import { PictureDecoder } from '@app/pictures';
import { createApi } from '../../apps/api/src/create-api';
import { TokenCounter } from '../../apps/api/src/models/token-counter';
import { WeightsInspector } from '../../apps/api/src/finetunes/weights-inspector';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DataSource } from 'typeorm';
import { type RunningBackEnds, startBackEnds } from './back-ends';
import { createTestDatabase } from './database';
import { startSandbox } from './sandbox';

/** A caller in a test. */
export interface TestKey {
  id: string;
  token: string;
  webhookSecret: string;
}

/** A response of the api, with its JSON parsed. */
export interface Reply<T> {
  status: number;
  headers: Headers;
  text: string;
  body: T;
}

export interface RequestOptions {
  key?: Pick<TestKey, 'token'>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is. */
  raw?: string | Uint8Array;
  headers?: Record<string, string>;
}

/** The real api on its own database, data folder and port. */
export interface TestApi {
  app: NestExpressApplication;
  baseUrl: string;
  config: Config;
  dataSource: DataSource;
  /** Its queue and its storage; another api on the same database gets their `env`. */
  backEnds: RunningBackEnds;
  /** The first sandbox key also starts what draws for sandbox keys. */
  createKey(overrides?: Partial<ApiKey>): Promise<TestKey>;
  request<T = Record<string, unknown>>(method: string, path: string, options?: RequestOptions): Promise<Reply<T>>;
  close(): Promise<void>;
}

/** Starts the api in this process. `env` overrides the test's variables. */
export async function startTestApi(env: Record<string, string> = {}): Promise<TestApi> {
  // Threads and processes run compiled code, which the global set-up builds.
  TokenCounter.threadFile = join(process.cwd(), 'dist/apps/api/src/models/counting-thread.js');
  WeightsInspector.processFile = join(process.cwd(), 'dist/apps/api/src/finetunes/inspection-process.js');
  PictureVerifier.processFile = join(process.cwd(), 'dist/libs/credentials/src/verifying-process.js');
  PictureDecoder.processFile = join(process.cwd(), 'dist/libs/pictures/src/decoding-process.js');
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'darkroom-api-'));
  const backEnds = await startBackEnds(database, dataDir);
  const config = loadConfig({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    MODELS_DIR: join(process.cwd(), 'models'),
    MODEL_FALLBACK: 'on',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    LOG_LEVEL: 'silent',
    PORT: '0',
    RATE_LIMIT_PER_MINUTE: '0',
    MAX_QUEUED_PER_KEY: '0',
    ...backEnds.env,
    ...env,
  });
  const app = await createApi(config);
  await app.listen(0, '127.0.0.1');
  const baseUrl = await app.getUrl();
  let sandbox: Promise<() => Promise<void>> | undefined;
  return {
    app,
    baseUrl,
    config,
    dataSource: database.dataSource,
    backEnds,
    async createKey(overrides) {
      if (overrides?.sandbox) await (sandbox ??= startSandbox(app, database.url));
      return insertKey(database.dataSource, overrides);
    },
    request: (method, path, options) => request(baseUrl, method, path, options),
    async close() {
      await (
        await sandbox
      )?.();
      await app.close();
      await backEnds.close();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A new key of a running api's database. */
export async function insertKey(dataSource: DataSource, overrides: Partial<ApiKey> = {}): Promise<TestKey> {
  const { token, prefix, secretHash } = newApiKeySecret();
  const [id, webhookSecret] = [newIdentifier(), newWebhookSecret()];
  const key = { id, name: 'test', prefix, secretHash, webhookSecret, ...overrides };
  await dataSource.manager.insert(ApiKey, key);
  return { id: key.id, token, webhookSecret: key.webhookSecret };
}

/** Sends one request to a running api. */
export async function request<T>(
  baseUrl: string,
  method: string,
  path: string,
  { key, body, raw, headers }: RequestOptions = {},
): Promise<Reply<T>> {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(key && { authorization: `Bearer ${key.token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...((raw !== undefined || body !== undefined) && { body: (raw as string) ?? JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson && text !== '' ? JSON.parse(text) : undefined) as T,
  };
}
