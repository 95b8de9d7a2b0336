import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { migrate } from '@app/database';
import { Command } from 'commander';
import { withDatabase } from './open-database';
import { runProgram } from './run-program';

const program = new Command('migrate')
  .description('Brings the tables of the service and of its queue to the newest version.')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const applied = await withDatabase(loadConfig(process.env), migrate, { makesFolder: true });
    if (json) return void process.stdout.write(`${JSON.stringify({ applied })}\n`);
    const text = applied.length > 0 ? `Applied: ${applied.join(', ')}.` : 'The database is up to date.';
    process.stdout.write(`${text}\n`);
  });

void runProgram(program);
