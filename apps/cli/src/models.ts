import { createInterface } from 'node:readline/promises';
import { exitCodes, runModels } from './models-command';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    // The second signal does not wait for the clean-up.
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    stop.abort();
  });

const { env, stdin, stdout, stderr } = process;

async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    return /^y(?:es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

const context = { env, stdout, stderr, signal: stop.signal, ...(stdin.isTTY && { ask }) };
void runModels(process.argv.slice(2), context).then((code) => {
  process.exitCode = code;
});
