import { ConfigError } from '@app/config';
import type { Command } from 'commander';
import { CommanderError } from 'commander';

/** A mistake of the user, or a state of the service, explained in one sentence. */
export class CliError extends Error {}

/** Runs a command-line program; sets the exit code: 0 for success, 1 for failure, 2 for a usage error. */
export async function runProgram(program: Command): Promise<void> {
  for (const command of [program, ...program.commands]) command.exitOverride();
  try {
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else {
      process.exitCode = error instanceof ConfigError ? 2 : 1;
      process.stderr.write(`${explain(error as Error & { code?: string })}\n`);
    }
  }
}

function explain(error: Error & { code?: string }): string {
  switch (error.code) {
    case '42P01':
      return 'The database has no tables yet: run "npm run migrate" first.';
    case '28P01':
      return 'The database refuses the user or the password in DATABASE_URL.';
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'ETIMEDOUT':
      return `The database does not answer (${error.code}): check DATABASE_URL.`;
    default:
      return error.message;
  }
}
