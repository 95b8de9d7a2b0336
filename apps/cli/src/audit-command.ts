import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { loadConfig } from '@app/config';
import { openImageStorage } from '@app/storage';
import { Command, InvalidArgumentError } from 'commander';
import type { DataSource } from 'typeorm';
import { Erasure } from './erasure';
import { withDataSource } from './open-database';
import { CliError, exitCodeOf, type Surroundings } from './run-program';

/** Entries read at a time: prompts may be long. */
const pageSize = 250;

/** Which entries; all that are given hold. */
interface Asked {
  day?: string;
  id?: string;
  user?: string;
}

/** Runs `audit`, which prints entries of the audit trail. @returns the exit code */
export function runAudit(
  args: readonly string[],
  surroundings: Surroundings & { stdout: NodeJS.WritableStream },
): Promise<number> {
  const program = programOf('audit', surroundings)
    .description('Prints who asked for what, and what became of it, as JSON lines: of a day, a record or a user.')
    .option('--day <date>', 'of this day (UTC), as YYYY-MM-DD', readDay)
    .option('--id <record>', 'of this Generation, Prompt or Fine-Tune, also after it was deleted')
    .option('--user <id>', 'of this user, as requests name it in "user"')
    .action((asked: Asked) => {
      if (Object.keys(asked).length === 0) program.error('error: one of --day, --id and --user is needed');
      return printEntries(asked, surroundings);
    });
  return exitCodeOf(program, args, surroundings.stderr);
}

/** Runs `erase --user <id>`, which erases what is known of a user. @returns the exit code */
export function runErase(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const program = programOf('erase', surroundings)
    .description(
      'Erases a user: records with their pictures, uploads, Fine-Tunes that were trained for the user, Styles, deliveries and the audit trail. For good; the service may run.',
    )
    .requiredOption('--user <id>', 'as requests name it in "user"')
    .option('--account <name>', 'of this account alone, by its name or the id of its first key')
    .option('--json', 'as JSON')
    .action((options: EraseOptions) => erase(options, surroundings));
  return exitCodeOf(program, args, surroundings.stderr);
}

const programOf = (name: string, { stdout, stderr }: Surroundings): Command =>
  new Command(name).configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(text),
  });

function readDay(text: string): string {
  const day = new Date(`${text}T00:00:00Z`);
  if (text.length !== 10 || Number.isNaN(day.getTime()) || !day.toISOString().startsWith(text))
    throw new InvalidArgumentError('It must be a day as YYYY-MM-DD.');
  if (day.getTime() > Date.now()) throw new InvalidArgumentError('It has not begun yet, in UTC.');
  return text;
}

async function printEntries(
  asked: Asked,
  { env, stdout, stderr }: Surroundings & { stdout: NodeJS.WritableStream },
): Promise<void> {
  const config = loadConfig(env);
  let isEmpty = true;
  async function* lines(dataSource: DataSource): AsyncGenerator<string> {
    let page = await pageAfter(undefined, asked, dataSource);
    isEmpty = page.length === 0;
    while (page.length > 0) {
      yield page.map(({ line }) => `${JSON.stringify(line)}\n`).join('');
      page = await pageAfter(page.at(-1), asked, dataSource);
    }
  }
  await withDataSource(config, (dataSource) =>
    pipeline(Readable.from(lines(dataSource), { highWaterMark: 1 }), stdout, { end: false }),
  ).catch((error: NodeJS.ErrnoException) => {
    // The reader has had enough, as `head` has.
    if (error.code !== 'EPIPE') throw error;
  });
  if (!isEmpty) return;
  if (config.auditDays === 0) stderr.write('No audit trail is kept: AUDIT_DAYS says for how many days.\n');
  const [what, name] = asked.id === undefined ? ['user', asked.user] : ['record', asked.id];
  // A day may be empty.
  if (name !== undefined) throw new CliError(`The audit trail has nothing of the ${what} "${name}".`);
}

interface Entry {
  at: string;
  position: string;
  line: object;
}

const pageAfter = (last: Entry | undefined, { day, id, user }: Asked, dataSource: DataSource): Promise<Entry[]> =>
  dataSource.query(entriesStatement, [day, id, user, last?.at ?? '-infinity', last?.position ?? '0', pageSize]);

/** Parameters: what is asked for, each or null; the time and position of the last entry before; how many. */
const entriesStatement = `
SELECT entry.at::text AS at, entry.id AS position, json_build_object(
  'at', to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'key', entry.owner_id, 'key_name', key.name, 'account', coalesce(key.account, entry.account_id), 'user', entry.end_user,
  'kind', entry.kind, 'id', entry.task_id, 'model', entry.model, 'served_by', entry.served_by, 'prompt', entry.prompt,
  'decision', entry.decision, 'reason', entry.reason, 'filtered', entry.filtered, 'flagged', entry.flagged,
  'flagged_by', entry.flagged_by, 'decided_at', to_char(entry.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
) AS line
FROM audit_entries entry LEFT JOIN api_keys key ON key.id = entry.owner_id
WHERE ($1::date IS NULL OR entry.at >= $1::date AT TIME ZONE 'UTC' AND entry.at < ($1::date + 1) AT TIME ZONE 'UTC')
  AND ($2::varchar IS NULL OR entry.task_id = $2) AND ($3::varchar IS NULL OR entry.end_user = $3)
  AND (entry.at, entry.id) > ($4, $5)
ORDER BY entry.at, entry.id LIMIT $6`;

interface EraseOptions {
  user: string;
  account?: string;
  json?: true;
}

async function erase({ user, account, json }: EraseOptions, { env, stdout }: Surroundings): Promise<void> {
  const config = loadConfig(env);
  const report = await withDataSource(config, async (dataSource) => {
    const accounts = account === undefined ? undefined : await accountsOf(dataSource, account);
    return new Erasure(dataSource, openImageStorage(config), user, accounts).run();
  });
  const { files_left: left, ...counts } = report;
  if (json) stdout.write(`${JSON.stringify({ user, account: account ?? null, ...report }, undefined, 2)}\n`);
  else
    for (const [name, count] of Object.entries(counts)) stdout.write(`${name.replace('_', ' ').padEnd(15)}${count}\n`);
  if (left.length > 0)
    throw new CliError(`${left.length} files could not be removed; the service removes them within two hours.`);
}

async function accountsOf(dataSource: DataSource, name: string): Promise<string[]> {
  const found = await dataSource.query<{ id: string }[]>(
    'SELECT DISTINCT account_id AS id FROM api_keys WHERE account = $1 OR account_id = $1',
    [name],
  );
  if (found.length === 0)
    throw new CliError(`There is no account "${name}"; "npm run keys -- list" shows them. Nothing was erased.`);
  return found.map(({ id }) => id);
}
