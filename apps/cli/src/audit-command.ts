import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { loadConfig } from '@app/config';
import { InvalidArgumentError } from 'commander';
import type { DataSource } from 'typeorm';
import { accountOption, accountsOf } from './account-option';
import { withDataSource } from './open-database';
import { CliError, exitCodeOf, programOf, type Surroundings } from './run-program';

/** Entries read at a time: prompts may be long. */
const pageSize = 250;

/** Which entries; all that are given hold. */
interface Asked {
  day?: string;
  id?: string;
  picture?: string;
  user?: string;
  account?: string;
}

/** Runs `audit`, which prints entries of the audit trail. @returns the exit code */
export function runAudit(
  args: readonly string[],
  surroundings: Surroundings & { stdout: NodeJS.WritableStream },
): Promise<number> {
  const program = programOf('audit', surroundings)
    .description(
      'Prints who asked for what, and what became of it, as JSON lines: of a day, a record, a picture or a user.',
    )
    .option('--day <date>', 'of this day (UTC), as YYYY-MM-DD', readDay)
    .option('--id <record>', 'of this Generation, Prompt or Fine-Tune, also after it was deleted')
    .option('--picture <url>', 'of the record that made the picture with this URL')
    .option('--user <id>', 'of this user, as requests name it in "user"')
    .option(...accountOption)
    .action((asked: Asked) => {
      const { account: _, ...what } = asked;
      if (Object.keys(what).length === 0) program.error('error: one of --day, --id, --picture and --user is needed');
      return printEntries(asked, surroundings);
    });
  return exitCodeOf(program, args, surroundings.stderr);
}

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
    const conditions = await conditionsOf(asked, dataSource);
    let page = await pageAfter(undefined, conditions, dataSource);
    isEmpty = page.length === 0;
    while (page.length > 0) {
      yield page.map(({ line }) => `${JSON.stringify(line)}\n`).join('');
      page = await pageAfter(page.at(-1), conditions, dataSource);
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
  const { id, picture, user } = asked;
  const [what, name] = Object.entries({ record: id, picture, user }).find((each) => each[1] !== undefined) ?? [];
  // A day may be empty.
  if (name !== undefined) throw new CliError(`The audit trail has nothing of the ${what} "${name}".`);
}

interface Entry {
  at: string;
  position: string;
  line: object;
}

/** What an entry must fulfil; null: anything. */
async function conditionsOf({ day, id, picture, user, account }: Asked, dataSource: DataSource) {
  const accounts = account === undefined ? null : await accountsOf(dataSource, account);
  return [day, id, user, accounts, picture === undefined ? null : await recordsOf(dataSource, picture)];
}

/** Of the secret part of a URL, while the picture or the Style is there; a URL of a bucket has the record's own id. */
async function recordsOf(dataSource: DataSource, url: string): Promise<string[]> {
  const names = url.match(/[\w-]+/g) ?? [];
  const found = await dataSource.query<{ id: string }[]>(
    `SELECT task_id AS id FROM images WHERE token = ANY($1)
     UNION SELECT source_prompt_id FROM styles WHERE thumbnail_token = ANY($1)`,
    [names],
  );
  return [...names, ...found.map(({ id }) => id)];
}

const pageAfter = (last: Entry | undefined, conditions: unknown[], dataSource: DataSource): Promise<Entry[]> =>
  dataSource.query(entriesStatement, [...[last?.at ?? '-infinity', last?.position ?? '0', pageSize], ...conditions]);

/** Parameters: the time and position of the last entry before; how many; what is asked for, as `conditionsOf`. */
const entriesStatement = `
SELECT entry.at::text AS at, entry.id AS position, json_build_object(
  'at', to_char(entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'key', entry.owner_id, 'key_name', key.name, 'account', coalesce(key.account, entry.account_id), 'user', entry.end_user,
  'kind', entry.kind, 'id', entry.task_id, 'model', entry.model, 'served_by', entry.served_by, 'prompt', entry.prompt,
  'decision', entry.decision, 'reason', entry.reason, 'filtered', entry.filtered, 'flagged', entry.flagged,
  'flagged_by', entry.flagged_by, 'decided_at', to_char(entry.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
) AS line
FROM audit_entries entry LEFT JOIN api_keys key ON key.id = entry.owner_id
WHERE (entry.at, entry.id) > ($1, $2)
  AND ($4::date IS NULL OR entry.at >= $4::date AT TIME ZONE 'UTC' AND entry.at < ($4::date + 1) AT TIME ZONE 'UTC')
  AND ($5::varchar IS NULL OR entry.task_id = $5) AND ($6::varchar IS NULL OR entry.end_user = $6)
  AND ($7::varchar[] IS NULL OR entry.account_id = ANY($7)) AND ($8::varchar[] IS NULL OR entry.task_id = ANY($8))
ORDER BY entry.at, entry.id LIMIT $3`;
