import { explainDatabaseError } from '@app/database';
import { StartError } from '@app/process';
import { Command, CommanderError } from 'commander';

/** A mistake of the user, or a state of the service, explained in one line. */
export class CliError extends Error {}

/** What a program uses of its process. */
export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>;
  stdout: Output;
  stderr: Output;
}

interface Output {
  write(text: string): unknown;
}

/** A program that writes where its surroundings say. */
export const programOf = (name: string, { stdout, stderr }: Surroundings): Command =>
  new Command(name).configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(text),
  });

/** Runs a program with the arguments of the process, and sets its exit code. */
export async function runProgram(program: Command): Promise<void> {
  process.exitCode = await exitCodeOf(program, process.argv.slice(2), process.stderr);
}

/** Runs a program. @returns the exit code: 0 success, 1 failure, 2 usage error, 78 wrong setting */
export async function exitCodeOf(program: Command, args: readonly string[], stderr: Output): Promise<number> {
  for (const command of [program, ...program.commands]) command.exitOverride();
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    stderr.write(`${explainDatabaseError(error) ?? (error as Error).message}\n`);
    return error instanceof StartError ? error.exitCode : 1;
  }
}
