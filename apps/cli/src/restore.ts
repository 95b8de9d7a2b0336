import 'reflect-metadata';
import { resolve } from 'node:path';
import { loadConfig } from '@app/config';
import { assertKnown } from '@app/database';
import { Command } from 'commander';
import { VerifiedBackup } from './backup/backup-folder';
import { assertEmptyPlace, restoreBackup } from './backup/restore-backup';
import { withDatabase } from './open-database';
import { runProgram } from './run-program';

interface Options {
  check?: true;
  json?: true;
}

async function restore(folder: string, { check, json }: Options): Promise<void> {
  process.umask(0o077);
  const config = loadConfig(process.env);
  const print = (result: object, ...lines: string[]): void =>
    void process.stdout.write(`${json ? JSON.stringify(result, undefined, 2) : lines.join('\n')}\n`);
  const backup = await VerifiedBackup.open(resolve(folder));
  assertKnown(backup.manifest.database);
  if (check) {
    const { made_at, files } = backup.manifest;
    return print({ made_at, files }, `The backup is whole: ${files} files, as of ${made_at}.`);
  }
  await assertEmptyPlace(config);
  const restored = await withDatabase(config, (url) => restoreBackup(config, url, backup), {
    makesFolder: true,
    migrates: false,
  });
  print(
    restored,
    `${restored.rows} rows and ${restored.files} files are as they were at ${restored.made_at}.`,
    ...restored.missing_models.map(
      ({ name, hash, source }) =>
        `The model ${name} (${hash.slice(0, 12)}) is not installed here: ${source ? `npm run models -- add ${source} --as ${name}` : 'copy its folder'}.`,
    ),
  );
}

const program = new Command('restore')
  .description(
    'Restores a backup into an empty data folder and an empty database, those that the environment names. The service must not run.',
  )
  .argument('<folder>', 'what "npm run backup" has made')
  .option('--check', 'only read the backup, and say whether it is whole')
  .option('--json', 'as JSON')
  .action(restore);

void runProgram(program);
