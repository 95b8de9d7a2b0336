import 'reflect-metadata';
import { performance } from 'node:perf_hooks';
import { ConfigError, loadConfig } from '@app/config';
import { DatabaseUnusableError } from '@app/database';
import { endSignals, misconfiguredExitCode } from '@app/process';
import { Launcher } from './launcher';
import { AlreadyRunningError, StartError } from './start-error';
import { welcome } from './welcome';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<void> {
  const isDevelopment = process.argv.includes('--development');
  const launcher = new Launcher(
    loadConfig(process.env),
    say,
    (error) => void leave(exitCodeOf(error), error),
    isDevelopment,
  );
  let leaving: Promise<void> | undefined;
  /** The first call ends the service, a second one kills it at once. */
  const leave = (exitCode: number, error?: Error): Promise<void> => {
    if (error) process.stderr.write(`${explain(error)}\n`);
    const stopped = launcher.stop();
    leaving ??= stopped.then(() => process.exit(exitCode));
    return leaving;
  };
  for (const signal of endSignals)
    process.on(signal, () => {
      say(leaving ? 'Stopping at once.' : 'Stopping: the api and the worker finish their work …');
      void leave(0);
    });
  // A parent process with an IPC channel wants the service to end with it.
  process.once('disconnect', () => void leave(0));
  // When the terminal is closed, the processes must still be ended in order.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

  try {
    const started = await launcher.start();
    say(`Ready after ${(performance.now() / 1000).toFixed(1)} s.`);
    if (!process.argv.includes('--no-welcome')) say(`\n${welcome(started)}`);
    process.send?.({ url: started.url });
  } catch (error) {
    if (leaving) return;
    if (error instanceof AlreadyRunningError) say(error.message);
    if (error instanceof AlreadyRunningError) await leave(0);
    else await leave(exitCodeOf(error), error as Error);
  }
}

/** One plain sentence for a known cause, the stack for any other. */
function explain(error: Error): string {
  const isPlain = [StartError, ConfigError, DatabaseUnusableError].some((kind) => error instanceof kind);
  return isPlain ? error.message : (error.stack ?? error.message);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof StartError) return error.exitCode;
  return error instanceof ConfigError ? misconfiguredExitCode : 1;
}

main().catch((error: Error) => {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(exitCodeOf(error));
});
