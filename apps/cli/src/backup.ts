import 'reflect-metadata';
import { resolve } from 'node:path';
import { loadConfig } from '@app/config';
import { formatBytes } from '@app/model-store';
import { Command } from 'commander';
import { writeBackup } from './backup/write-backup';
import { withDatabase } from './open-database';
import { runProgram } from './run-program';

async function backup(folder: string, { json }: { json?: true }): Promise<void> {
  // A backup has everything that is secret, like the data folder.
  process.umask(0o077);
  const config = loadConfig(process.env);
  const made = await withDatabase(config, (url) => writeBackup(config, url, resolve(folder)), { migrates: false });
  process.stdout.write(
    json
      ? `${JSON.stringify(made, undefined, 2)}\n`
      : `${made.folder} has ${made.rows} rows and ${made.files} files (${formatBytes(made.bytes)}), as of ${made.made_at}.\n`,
  );
}

const program = new Command('backup')
  .description(
    'Backs up the database, pictures, weights and the first key into a new folder, while the service may run. Settings and models are not in it.',
  )
  .argument('<folder>', 'a folder that is not there yet, or is empty')
  .option('--json', 'as JSON')
  .action(backup);

void runProgram(program);
