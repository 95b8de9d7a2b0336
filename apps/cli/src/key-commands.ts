import type { Repository } from 'typeorm';
import { loadConfig } from '@app/config';
import {
  ApiKey,
  type ApiKeyScope,
  changeKey,
  keyFacts,
  type KeyFilter,
  nameAccount,
  newApiKey,
  revokeKey,
  rotateKey,
  rotateWebhookSecret,
  saveKey,
} from '@app/domain';
import { Transactions } from '@app/queue';
import { cancelAll } from '@app/tasks';
import { withDataSource } from './open-database';
import { CliError, type Surroundings } from './run-program';
import { textTable } from './text-table';

interface Output {
  json?: true;
}

/** By its id or by the public part of its token, `dr_<prefix>_…`. */
async function find(keys: Repository<ApiKey>, name: string): Promise<ApiKey> {
  const key = await keys.findOneBy([{ id: name }, { prefix: name.replace(/^dr_/, '').split('_')[0] }]);
  if (!key) throw new CliError(`There is no API key "${name}"; "npm run keys -- list" shows them all.`);
  return key;
}

const cancelTasks = (keys: Repository<ApiKey>, id: string): Promise<number> =>
  cancelAll(new Transactions(keys.manager.connection), id);

/** A word stands for no limit. */
type Limits = Partial<Record<'rate' | 'queued' | 'concurrent' | 'storage' | 'retention', number | string>> & {
  trainingUploads?: boolean;
  filter?: KeyFilter;
};

/** Work of the commands of `keys`. */
export class KeyCommands {
  constructor(private readonly surroundings: Surroundings) {}

  readonly create = async (
    options: { name: string; account?: string; scopes: ApiKeyScope[]; sandbox: boolean } & Output,
  ): Promise<void> => {
    const { apiKey, token } = newApiKey(options.name, options.scopes);
    const key = Object.assign(apiKey, { sandbox: options.sandbox });
    await this.withKeys((keys) => saveKey(keys.manager, key, options.account));
    this.report(
      options,
      { id: apiKey.id, token, webhook_secret: apiKey.webhookSecret },
      `id              ${apiKey.id}`,
      `token           ${token}`,
      `webhook secret  ${apiKey.webhookSecret}`,
      '',
      'The token is shown only now and cannot be recovered.',
    );
  };

  readonly list = async ({ json }: Output): Promise<void> => {
    const found = await this.withKeys((keys) => keys.find({ order: { createdAt: 'ASC', id: 'ASC' } }));
    if (json) return this.print(JSON.stringify(found.map(keyFacts), undefined, 2));
    if (found.length === 0)
      return this.print('There are no API keys; "npm run keys -- create --name <name>" makes one.');
    const rows = found.map((key) => [
      key.id,
      `dr_${key.prefix}`,
      key.name,
      key.account ?? '-',
      key.scopes.join(','),
      key.sandbox ? 'sandbox' : 'engine',
      key.filter,
      formatTime(key.createdAt),
      formatTime(key.lastUsedAt),
      formatTime(key.revokedAt),
    ]);
    const heads = [
      'ID',
      'PREFIX',
      'NAME',
      'ACCOUNT',
      'SCOPES',
      'DRAWN BY',
      'FILTER',
      'CREATED',
      'LAST USED',
      'REVOKED',
    ];
    this.print(...textTable([heads, ...rows]));
  };

  readonly show = async (name: string, output: Output): Promise<void> => {
    const key = await this.withKeys((keys) => find(keys, name));
    this.report(
      output,
      { ...keyFacts(key), webhook_secret: key.webhookSecret },
      `id              ${key.id}`,
      `prefix          dr_${key.prefix}`,
      `name            ${key.name}`,
      `account         ${key.account ?? 'its own'}`,
      `scopes          ${key.scopes.join(', ')}`,
      `drawn by        ${key.sandbox ? 'sandbox' : 'engine'}`,
      ...limitLines(key),
      `created         ${formatTime(key.createdAt)}`,
      `last used       ${formatTime(key.lastUsedAt)}`,
      `revoked         ${formatTime(key.revokedAt)}`,
      `webhook secret  ${key.webhookSecret}`,
    );
  };

  readonly account = async (name: string, account: string, output: Output): Promise<void> => {
    const key = await this.withKeys(async (keys) => nameAccount(keys.manager, (await find(keys, name)).id, account));
    this.report(
      output,
      keyFacts(key),
      `The account of the key "${key.name}" is "${key.account}"; new keys can join it.`,
    );
  };

  readonly limit = async (
    name: string,
    { rate, queued, concurrent, storage, retention, trainingUploads, filter, ...output }: Limits & Output,
  ): Promise<void> => {
    const wanted = {
      rateLimitPerMinute: rate,
      maxQueued: queued,
      maxConcurrent: concurrent,
      maxStorageMb: storage,
      retentionDays: retention,
      keepTrainingUploads: trainingUploads,
    };
    const given = Object.entries(wanted).filter(([, value]) => value !== undefined);
    const limits = Object.fromEntries(given.map(([field, value]) => [field, typeof value === 'string' ? null : value]));
    const change = { ...limits, ...(filter && { filter }) };
    const key = await this.withKeys(async (keys) => changeKey(keys.manager, (await find(keys, name)).id, change));
    this.report(output, keyFacts(key), ...limitLines(key));
  };

  readonly rotate = async (name: string, { grace, ...output }: { grace: Date } & Output): Promise<void> => {
    const { token } = await this.withKeys(async (keys) => rotateKey(keys.manager, (await find(keys, name)).id, grace));
    this.report(
      output,
      { token, previous_token_expires_at: grace },
      `token           ${token}`,
      '',
      'The token is shown only now and cannot be recovered.',
      `The previous token is accepted until ${formatTime(grace)}.`,
    );
  };

  readonly rotateSigning = async (name: string, { grace, ...output }: { grace: Date } & Output): Promise<void> => {
    const key = await this.withKeys(async (keys) =>
      rotateWebhookSecret(keys.manager, (await find(keys, name)).id, grace),
    );
    this.report(
      output,
      { webhook_secret: key.webhookSecret, previous_webhook_secret_expires_at: grace },
      `webhook secret  ${key.webhookSecret}`,
      '',
      `The previous secret also signs until ${formatTime(grace)}.`,
    );
  };

  readonly revoke = async (name: string, output: Output): Promise<void> => {
    const { key, canceled } = await this.withKeys(async (keys) => {
      const found = await find(keys, name);
      await revokeKey(keys.manager, found.id);
      return { key: found, canceled: await cancelTasks(keys, found.id) };
    });
    const said = key.revokedAt ? `was revoked already, ${formatTime(key.revokedAt)}` : 'is revoked';
    this.report(
      output,
      { id: key.id, canceled },
      `The key "${key.name}" ${said}.${canceled > 0 ? ` ${canceledText(canceled)}` : ''}`,
    );
  };

  readonly stop = async (name: string, output: Output): Promise<void> => {
    const canceled = await this.withKeys(async (keys) => cancelTasks(keys, (await find(keys, name)).id));
    this.report(output, { canceled }, canceledText(canceled));
  };

  private withKeys<T>(use: (keys: Repository<ApiKey>) => Promise<T>): Promise<T> {
    const config = loadConfig(this.surroundings.env);
    return withDataSource(config, (dataSource) => use(dataSource.getRepository(ApiKey)));
  }

  private report({ json }: Output, result: object, ...lines: string[]): void {
    if (json) this.print(JSON.stringify(result, undefined, 2));
    else this.print(...lines);
  }

  /** Names from before control characters were refused must not command the terminal. */
  private print(...lines: string[]): void {
    this.surroundings.stdout.write(`${lines.join('\n').replace(/[^\P{Cc}\n]/gu, '\uFFFD')}\n`);
  }
}

function limitLines(key: ApiKey): string[] {
  const count = (value: number | null): string => (value === null ? 'default' : value === 0 ? 'no limit' : `${value}`);
  return [
    `requests/minute ${count(key.rateLimitPerMinute)}`,
    `queued          ${count(key.maxQueued)}`,
    `concurrent      ${count(key.maxConcurrent)}`,
    `storage         ${key.maxStorageMb ? `${key.maxStorageMb} MB` : count(key.maxStorageMb)}`,
    `kept for        ${key.retentionDays === null ? 'ever' : key.retentionDays === 1 ? '1 day' : `${key.retentionDays} days`}`,
    `after training  uploads are ${key.keepTrainingUploads ? 'kept' : 'deleted'}`,
    `filter          ${key.filter}`,
  ];
}

const canceledText = (count: number): string =>
  count === 1 ? '1 Generation or Prompt was canceled.' : `${count} Generations and Prompts were canceled.`;

/** In UTC, to the second. */
const formatTime = (date: Date | null): string => (date ? date.toISOString().slice(0, 19).replace('T', ' ') : '-');
