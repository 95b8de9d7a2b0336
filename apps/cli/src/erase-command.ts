import { loadConfig } from '@app/config';
import { openImageStorage } from '@app/storage';
import { accountOption, accountsOf } from './account-option';
import { Erasure } from './erasure';
import { withDataSource } from './open-database';
import { CliError, exitCodeOf, programOf, type Surroundings } from './run-program';

/** Runs `erase --user <id>`, which erases what is known of a user. @returns the exit code */
export function runErase(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const program = programOf('erase', surroundings)
    .description(
      'Erases a user: records with their pictures, uploads, Fine-Tunes that were trained, or whose weights were fetched, for the user, with what was drawn with them, Styles, deliveries, the audit trail and the name in usage. For good; the service may run.',
    )
    .requiredOption('--user <id>', 'as requests name it in "user"')
    .option(...accountOption)
    .option('--json', 'as JSON')
    .action((options: EraseOptions) => erase(options, surroundings));
  return exitCodeOf(program, args, surroundings.stderr);
}

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
  const whose = { user, account: account ?? null, at: new Date().toISOString() };
  if (json) stdout.write(`${JSON.stringify({ ...whose, ...report }, undefined, 2)}\n`);
  else
    for (const [name, value] of Object.entries({ ...whose, account: account ?? 'all', ...counts }))
      stdout.write(`${name.replace('_', ' ').padEnd(15)}${value}\n`);
  if (left.length > 0)
    throw new CliError(`${left.length} files could not be removed; the service removes them within two hours.`);
}
