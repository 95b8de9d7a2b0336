import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@app/config';
import { DatabaseUnreachableError, migrate } from '@app/database';
import { BackOff } from '@app/process';
import { Command } from 'commander';
import { withDatabase } from './open-database';
import { runProgram } from './run-program';

const program = new Command('migrate')
  .description('Brings the tables of the service and of its queue to the newest version.')
  .option('--json', 'as JSON')
  .option('--wait <seconds>', 'how long to wait for a database that does not answer yet', Number, 0)
  .action(async ({ json, wait }: { json?: true; wait: number }) => {
    const config = loadConfig(process.env);
    const applied = await onceReachable(wait, () => withDatabase(config, migrate, { makesFolder: true }));
    if (json) return void process.stdout.write(`${JSON.stringify({ applied })}\n`);
    const text = applied.length > 0 ? `Applied: ${applied.join(', ')}.` : 'The database is up to date.';
    process.stdout.write(`${text}\n`);
  });

/** A database that was just started may not answer yet. */
async function onceReachable<T>(seconds: number, use: () => Promise<T>): Promise<T> {
  const backOff = new BackOff(500, 5_000);
  for (const deadline = Date.now() + seconds * 1_000; ;) {
    try {
      return await use();
    } catch (error) {
      if (!(error instanceof DatabaseUnreachableError) || !error.mayPass || Date.now() > deadline) throw error;
      await delay(backOff.next());
    }
  }
}

void runProgram(program);
