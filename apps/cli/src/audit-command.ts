import { loadConfig } from '@app/config';
import { openImageStorage } from '@app/storage';
import { Command, InvalidArgumentError } from 'commander';
import type { DataSource } from 'typeorm';
import { Erasure } from './erasure';
import { withDataSource } from './open-database';
import { CliError, exitCodeOf, type Surroundings } from './run-program';

/** Lines read at a time. */
const pageSize = 1_000;

/** Runs `audit --day <date>`, which prints a day of the audit trail. @returns the exit code */
export function runAudit(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const program = programOf('audit', surroundings)
    .description('Prints who asked for what on a day (UTC), and what became of it, as JSON lines.')
    .requiredOption('--day <date>', 'as YYYY-MM-DD', readDay)
    .action(({ day }: { day: string }) => printDay(day, surroundings));
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
  if (!Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) && text.length === 10) return text;
  throw new InvalidArgumentError('It must be a day as YYYY-MM-DD.');
}

async function printDay(day: string, { env, stdout, stderr }: Surroundings): Promise<void> {
  const config = loadConfig(env);
  let printed = 0;
  await withDataSource(config, async (dataSource) => {
    for (let last = '0', count = pageSize; count === pageSize; printed += count) {
      const rows = await dataSource.query<{ position: string; line: object }[]>(linesStatement, [day, last, pageSize]);
      for (const { line } of rows) stdout.write(`${JSON.stringify(line)}\n`);
      count = rows.length;
      last = rows.at(-1)?.position ?? last;
    }
  });
  if (printed === 0 && config.auditDays === 0)
    stderr.write('No audit trail is kept: AUDIT_DAYS says for how many days.\n');
}

/** In order of their writing. Parameters: the day, the last line before, the number of lines. */
const linesStatement = `
SELECT entry.id AS position, json_build_object(
  'at', to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'key', entry.owner_id, 'key_name', key.name, 'account', coalesce(key.account, entry.account_id), 'user', entry.end_user,
  'kind', entry.kind, 'id', entry.task_id, 'model', entry.model, 'served_by', entry.served_by, 'prompt', entry.prompt,
  'decision', entry.decision, 'reason', entry.reason, 'filtered', entry.filtered, 'flagged', entry.flagged,
  'flagged_by', entry.flagged_by, 'decided_at', to_char(entry.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
) AS line
FROM audit_entries entry LEFT JOIN api_keys key ON key.id = entry.owner_id
WHERE entry.id > $2 AND entry.at >= $1::date AT TIME ZONE 'UTC'
  AND entry.at < ($1::date + 1) AT TIME ZONE 'UTC'
ORDER BY entry.id LIMIT $3`;

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
