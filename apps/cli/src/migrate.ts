import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { carryOver, migrate } from '@app/database';
import { Command } from 'commander';
import { withDatabase } from './open-database';
import { runProgram } from './run-program';

const program = new Command('migrate')
  .description('Brings the tables of the service and of its queue to the newest version.')
  .option('--json', 'as JSON')
  .option('--carry-over', 'first bring over the rows of a version that had a table of image tasks')
  .action(async ({ json, carryOver: isEarlier }: { json?: true; carryOver?: true }) => {
    if (isEarlier) await withDatabase(loadConfig(process.env), carryOver, { migrates: false });
    const applied = await withDatabase(loadConfig(process.env), migrate, { makesFolder: true });
    if (json) return void process.stdout.write(`${JSON.stringify({ applied })}\n`);
    const text = applied.length > 0 ? `Applied: ${applied.join(', ')}.` : 'The database is up to date.';
    process.stdout.write(`${text}\n`);
  });

void runProgram(program);
