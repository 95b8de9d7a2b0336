import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { migrate } from '@app/database';
import { Command } from 'commander';
import { withDatabase } from './open-database';
import { runProgram } from './run-program';

const program = new Command('migrate')
  .description('Brings the tables of the service and of its queue to the newest version.')
  .action(async () => {
    const applied = await withDatabase(loadConfig(process.env), migrate);
    const text = applied.length > 0 ? `Applied: ${applied.join(', ')}.` : 'The database is up to date.';
    process.stdout.write(`${text}\n`);
  });

void runProgram(program);
