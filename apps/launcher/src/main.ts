import 'reflect-metadata';
import { relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { loadConfig } from '@app/config';
import { signInCodeMs } from '@app/domain';
import { endSignals, failureToStart } from '@app/process';
import { AlreadyRunningError, Launcher, type Started } from './launcher';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Time in which a second signal counts as the first one. */
const sameSignalMs = 500;

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
  let signalledAt = -Infinity;
  for (const signal of endSignals)
    process.on(signal, () => {
      // npm passes on a terminal's Ctrl-C, which this process has already received from the terminal.
      if (performance.now() - signalledAt < sameSignalMs) return;
      signalledAt = performance.now();
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

/**
 * The address to open, and commands to paste that draw the first picture. They read the key from its file, which keeps
 * it out of logs and shell history. The code stands after a `#`: browsers do not send that part, so no server logs it.
 */
function welcome({ url, publicUrl, key, model }: Started): string {
  const file = shortest(key.file);
  const token = key.token ? `$(cat ${quote(file)})` : '<your key>';
  const body = JSON.stringify({ prompt: 'a red circle on a blue background', ...(model && { model }) });
  const authorization = `-H "Authorization: Bearer ${token}"`;
  return [
    `Darkroom is ready at ${publicUrl}   (documentation: ${publicUrl}/docs)`,
    ...(key.signInCode
      ? [
          '',
          'Open this address to draw in your browser:',
          `  ${publicUrl}/#code=${key.signInCode}`,
          `It signs in the first browser that opens it, once, within ${signInCodeMs / 60_000} minutes.`,
          '',
        ]
      : []),
    key.token
      ? `Your API key is in ${file}`
      : `There is no usable API key in ${file}: make one with   npm run keys -- create --name me`,
    '',
    'Draw a picture:',
    `  curl -s ${url}/v1/sd/text-to-image ${authorization} \\`,
    `    -H 'Content-Type: application/json' -d '${body}'`,
    '',
    'Its address is in "images" once "status" is "succeeded". The newest one, saved as picture.png:',
    `  curl -s "${url}/v1/sd/text-to-image?limit=1" ${authorization} \\`,
    `    | grep -o '"images":\\["[^"]*' | cut -d '"' -f 4 | xargs curl -s -o picture.png`,
    '',
    `Or in one go:  npm run demo -- "a red circle on a blue background"${model ? ` --model ${model}` : ''}`,
    'Ctrl-C stops it.',
  ].join('\n');
}

function shortest(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

/** Also inside double quotes. */
function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
