import 'reflect-metadata';
import { performance } from 'node:perf_hooks';
import { loadConfig } from '@app/config';
import { endSignals, failureToStart } from '@app/process';
import { AlreadyRunningError } from './already-running-error';
import { Launcher } from './launcher';
import { welcome } from './welcome';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<void> {
  const isDevelopment = process.argv.includes('--development');
  const launcher = new Launcher(loadConfig(process.env), say, (error) => void leaveBecauseOf(error), isDevelopment);
  let leaving: Promise<void> | undefined;
  /** The first call ends the service, a second one kills it at once. */
  const leave = (exitCode: number): Promise<void> => {
    const stopped = launcher.stop();
    leaving ??= stopped.then(() => process.exit(exitCode));
    return leaving;
  };
  const leaveBecauseOf = (error: Error): Promise<void> => leave(sayFailure(error));
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
    else await leaveBecauseOf(error as Error);
  }
}

/** @returns the exit code. */
function sayFailure(error: Error): number {
  const { text, exitCode } = failureToStart(error);
  process.stderr.write(`${text}\n`);
  return exitCode;
}

main().catch((error: Error) => process.exit(sayFailure(error)));
