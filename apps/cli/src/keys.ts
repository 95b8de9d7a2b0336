import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { createDataSource, newApiKey } from '@app/database';
import type { ApiKeyScope } from '@app/domain';
import { ApiKey, apiKeyScopes, limits } from '@app/domain';
import { Command, InvalidArgumentError } from 'commander';
import type { Repository } from 'typeorm';
import { withDatabase } from './open-database';
import { CliError, runProgram } from './run-program';

/** Lends the table of keys to one command. */
function withKeys<T>(use: (keys: Repository<ApiKey>) => Promise<T>): Promise<T> {
  return withDatabase(loadConfig(process.env), async (databaseUrl) => {
    const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
    try {
      return await use(dataSource.getRepository(ApiKey));
    } finally {
      await dataSource.destroy();
    }
  });
}

const print = (...lines: string[]): void => void process.stdout.write(`${lines.join('\n')}\n`);

function readName(text: string): string {
  const name = text.trim();
  if (name && name.length <= limits.nameLength) return name;
  throw new InvalidArgumentError(`It must have 1 to ${limits.nameLength} characters.`);
}

function readScopes(text: string): ApiKeyScope[] {
  const words = text.split(',').map((word) => word.trim());
  const scopes = apiKeyScopes.filter((scope) => words.includes(scope));
  if (scopes.length === words.length) return scopes;
  throw new InvalidArgumentError(`It must be one or more of ${apiKeyScopes.join(', ')}, with commas.`);
}

/** A key by its id or by the public part of its token, `dr_<prefix>_…`. */
async function find(keys: Repository<ApiKey>, name: string): Promise<ApiKey> {
  const key = await keys.findOneBy([{ id: name }, { prefix: name.replace(/^dr_/, '').split('_')[0] }]);
  if (!key) throw new CliError(`There is no API key "${name}"; "npm run keys -- list" shows them all.`);
  return key;
}

async function create({ name, scopes }: { name: string; scopes: ApiKeyScope[] }): Promise<void> {
  const { apiKey, token } = newApiKey(name, scopes);
  await withKeys((keys) => keys.save(apiKey));
  print(
    `id              ${apiKey.id}`,
    `token           ${token}`,
    `webhook secret  ${apiKey.webhookSecret}`,
    '',
    'The token is shown this once and cannot be had again.',
  );
}

async function list(): Promise<void> {
  const found = await withKeys((keys) => keys.find({ order: { createdAt: 'ASC', id: 'ASC' } }));
  if (found.length === 0) return print('There are no API keys; "npm run keys -- create --name <name>" makes one.');
  const rows = found.map((key) => [
    key.id,
    `dr_${key.prefix}`,
    key.name,
    key.scopes.join(','),
    moment(key.createdAt),
    moment(key.lastUsedAt),
    moment(key.revokedAt),
  ]);
  const table = [['ID', 'PREFIX', 'NAME', 'SCOPES', 'CREATED', 'LAST USED', 'REVOKED'], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  print(
    ...table.map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    ),
  );
}

async function show(name: string): Promise<void> {
  const key = await withKeys((keys) => find(keys, name));
  print(
    `id              ${key.id}`,
    `prefix          dr_${key.prefix}`,
    `name            ${key.name}`,
    `scopes          ${key.scopes.join(', ')}`,
    `created         ${moment(key.createdAt)}`,
    `last used       ${moment(key.lastUsedAt)}`,
    `revoked         ${moment(key.revokedAt)}`,
    `webhook secret  ${key.webhookSecret}`,
  );
}

async function revoke(name: string): Promise<void> {
  const key = await withKeys(async (keys) => {
    const found = await find(keys, name);
    if (!found.revokedAt) await keys.update({ id: found.id }, { revokedAt: new Date() });
    return found;
  });
  print(
    key.revokedAt
      ? `The key "${key.name}" was revoked already, ${moment(key.revokedAt)}.`
      : `The key "${key.name}" is revoked.`,
  );
}

const moment = (date: Date | null): string => (date ? date.toISOString().slice(0, 19).replace('T', ' ') : '-');

const program = new Command('keys').description('The API keys of the service.');
program
  .command('create')
  .description('make a key; prints its token once')
  .requiredOption('--name <name>', 'what it is for', readName)
  .option('--scopes <scopes>', `of ${apiKeyScopes.join(', ')}`, readScopes, ['read', 'write'] satisfies ApiKeyScope[])
  .action(create);
program.command('list').description('all keys').action(list);
program
  .command('show')
  .description('one key, with the secret that signs its webhooks')
  .argument('<id>', 'its id or prefix')
  .action(show);
program.command('revoke').description('refuse a key from now on').argument('<id>', 'its id or prefix').action(revoke);
// An id may begin with a dash, which would read as an option.
for (const command of program.commands) if (command.name() !== 'create') command.allowUnknownOption();

void runProgram(program);
