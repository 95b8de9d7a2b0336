import 'reflect-metadata';
import { changeKey, newApiKey, revokeKey, rotateKey, rotateWebhookSecret } from '@app/api-keys';
import { loadConfig } from '@app/config';
import { createDataSource } from '@app/database';
import type { ApiKeyScope } from '@app/domain';
import { ApiKey, apiKeyScopes, graceEnd, keyBounds, keyFacts } from '@app/domain';
import { Command, Option } from 'commander';
import type { Repository } from 'typeorm';
import { cancelWork } from './key-work';
import { readCount, readDays, readGrace, readName, readScopes } from './key-options';
import { canceledText, formatTime, limitLines } from './key-texts';
import { withDatabase } from './open-database';
import { CliError, runProgram } from './run-program';
import { textTable } from './text-table';

/** Cancels the tasks of the key with this id. */
type CancelWork = (keyId: string) => Promise<number>;

/** Opens the table of keys for one command. */
function withKeys<T>(use: (keys: Repository<ApiKey>, cancel: CancelWork) => Promise<T>): Promise<T> {
  const config = loadConfig(process.env);
  return withDatabase(config, async (databaseUrl) => {
    const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
    try {
      const cancel = (keyId: string) => cancelWork(config, databaseUrl, dataSource, keyId);
      return await use(dataSource.getRepository(ApiKey), cancel);
    } finally {
      await dataSource.destroy();
    }
  });
}

/** Whether the command was asked for JSON, as every one of them may be. */
interface Output {
  json?: true;
}

const print = (...lines: string[]): void => void process.stdout.write(`${lines.join('\n')}\n`);

/** Prints a result as JSON or as lines of text. */
function report({ json }: Output, result: object, ...lines: string[]): void {
  if (json) print(JSON.stringify(result, undefined, 2));
  else print(...lines);
}

/** Finds a key by its id or by the public part of its token, `dr_<prefix>_…`. */
async function find(keys: Repository<ApiKey>, name: string): Promise<ApiKey> {
  const key = await keys.findOneBy([{ id: name }, { prefix: name.replace(/^dr_/, '').split('_')[0] }]);
  if (!key) throw new CliError(`There is no API key "${name}"; "npm run keys -- list" shows them all.`);
  return key;
}

async function create(options: { name: string; scopes: ApiKeyScope[]; sandbox: boolean } & Output): Promise<void> {
  const { name, scopes, sandbox } = options;
  const { apiKey, token } = newApiKey(name, scopes);
  await withKeys((keys) => keys.save(Object.assign(apiKey, { sandbox })));
  report(
    options,
    { id: apiKey.id, token, webhook_secret: apiKey.webhookSecret },
    `id              ${apiKey.id}`,
    `token           ${token}`,
    `webhook secret  ${apiKey.webhookSecret}`,
    '',
    'The token is shown only now and cannot be recovered.',
  );
}

async function list({ json }: Output): Promise<void> {
  const found = await withKeys((keys) => keys.find({ order: { createdAt: 'ASC', id: 'ASC' } }));
  if (json) return print(JSON.stringify(found.map(keyFacts), undefined, 2));
  if (found.length === 0) return print('There are no API keys; "npm run keys -- create --name <name>" makes one.');
  const rows = found.map((key) => [
    key.id,
    `dr_${key.prefix}`,
    key.name,
    key.scopes.join(','),
    key.sandbox ? 'sandbox' : 'engine',
    formatTime(key.createdAt),
    formatTime(key.lastUsedAt),
    formatTime(key.revokedAt),
  ]);
  const heads = ['ID', 'PREFIX', 'NAME', 'SCOPES', 'DRAWN BY', 'CREATED', 'LAST USED', 'REVOKED'];
  print(...textTable([heads, ...rows]));
}

async function show(name: string, output: Output): Promise<void> {
  const key = await withKeys((keys) => find(keys, name));
  report(
    output,
    { ...keyFacts(key), webhook_secret: key.webhookSecret },
    `id              ${key.id}`,
    `prefix          dr_${key.prefix}`,
    `name            ${key.name}`,
    `scopes          ${key.scopes.join(', ')}`,
    `drawn by        ${key.sandbox ? 'sandbox' : 'engine'}`,
    ...limitLines(key),
    `created         ${formatTime(key.createdAt)}`,
    `last used       ${formatTime(key.lastUsedAt)}`,
    `revoked         ${formatTime(key.revokedAt)}`,
    `webhook secret  ${key.webhookSecret}`,
  );
}

interface LimitOptions {
  rate?: number | 'default';
  queued?: number | 'default';
  concurrent?: number | 'default';
  storage?: number | 'default';
  retention?: number | 'keep';
}

const stored = (value: number | string): number | null => (typeof value === 'number' ? value : null);

async function limit(
  name: string,
  { rate, queued, concurrent, storage, retention, ...output }: LimitOptions & Output,
): Promise<void> {
  const key = await withKeys(async (keys) => {
    const { id } = await find(keys, name);
    return changeKey(keys.manager, id, {
      ...(rate !== undefined && { rateLimitPerMinute: stored(rate) }),
      ...(queued !== undefined && { maxQueued: stored(queued) }),
      ...(concurrent !== undefined && { maxConcurrent: stored(concurrent) }),
      ...(storage !== undefined && { maxStorageMb: stored(storage) }),
      ...(retention !== undefined && { retentionDays: stored(retention) }),
    });
  });
  report(output, keyFacts(key), ...limitLines(key));
}

async function rotate(name: string, { grace, ...output }: { grace: Date } & Output): Promise<void> {
  const { token } = await withKeys(async (keys) => rotateKey(keys.manager, (await find(keys, name)).id, grace));
  report(
    output,
    { token, previous_token_expires_at: grace },
    `token           ${token}`,
    '',
    'The token is shown only now and cannot be recovered.',
    `The previous token is accepted until ${formatTime(grace)}.`,
  );
}

async function rotateSigning(name: string, { grace, ...output }: { grace: Date } & Output): Promise<void> {
  const key = await withKeys(async (keys) => rotateWebhookSecret(keys.manager, (await find(keys, name)).id, grace));
  report(
    output,
    { webhook_secret: key.webhookSecret, previous_webhook_secret_expires_at: grace },
    `webhook secret  ${key.webhookSecret}`,
    '',
    `The previous secret also signs until ${formatTime(grace)}.`,
  );
}

async function revoke(name: string, output: Output): Promise<void> {
  const { key, canceled } = await withKeys(async (keys, cancel) => {
    const found = await find(keys, name);
    await revokeKey(keys.manager, found.id);
    return { key: found, canceled: await cancel(found.id) };
  });
  const said = key.revokedAt ? `was revoked already, ${formatTime(key.revokedAt)}` : 'is revoked';
  report(
    output,
    { id: key.id, canceled },
    `The key "${key.name}" ${said}.${canceled > 0 ? ` ${canceledText(canceled)}` : ''}`,
  );
}

async function stop(name: string, output: Output): Promise<void> {
  const canceled = await withKeys(async (keys, cancel) => cancel((await find(keys, name)).id));
  report(output, { canceled }, canceledText(canceled));
}

const program = new Command('keys').description(
  'The API keys of the service, in its database: that of DATABASE_URL, or the one in DATA_DIR.',
);
program
  .command('create')
  .description('make a key; prints its token once')
  .requiredOption('--name <name>', 'what it is for', readName)
  .option('--scopes <scopes>', `of ${apiKeyScopes.join(', ')}`, readScopes, ['read', 'write'] satisfies ApiKeyScope[])
  .option('--sandbox', 'no engine draws for it: it gets marked pictures at once, failures and delays on request', false)
  .action(create);
program.command('list').description('all keys').action(list);
program
  .command('show')
  .description('one key, with its webhook secret')
  .argument('<id>', 'its id or prefix')
  .action(show);
program
  .command('revoke')
  .description('revoke a key, close its connections and cancel its tasks')
  .argument('<id>', 'its id or prefix')
  .action(revoke);
program
  .command('stop')
  .description('cancel all tasks of a key; the key stays valid')
  .argument('<id>', 'its id or prefix')
  .action(stop);
program
  .command('limit')
  .description('set the limits of a key; 0 means no limit, "default" the default of the service')
  .argument('<id>', 'its id or prefix')
  .option('--rate <count>', 'requests per minute', readCount)
  .option('--queued <count>', 'Generations and Prompts that may wait', readCount)
  .option('--concurrent <count>', 'those that may be drawn at once', readCount)
  .option('--storage <MB>', 'megabytes of pictures and weights', readCount)
  .option('--retention <days>', 'days after which what has finished is deleted, or "keep"', readDays)
  .action(limit);
for (const [name, what, action] of [
  ['rotate', 'give a key a new token', rotate],
  ['rotate-webhook-secret', 'give a key a new webhook secret', rotateSigning],
] as const)
  program
    .command(name)
    .description(`${what}; the previous one stays valid for a while`)
    .argument('<id>', 'its id or prefix')
    .addOption(
      new Option('--grace <hours>', 'how long the previous one stays valid')
        .argParser(readGrace)
        .default(graceEnd(), `${keyBounds.graceHours.default}`),
    )
    .action(action);
for (const command of program.commands) command.option('--json', 'as JSON');
// An id may begin with a dash, which commander would read as an option.
for (const command of program.commands) if (command.name() !== 'create') command.allowUnknownOption();

void runProgram(program);
