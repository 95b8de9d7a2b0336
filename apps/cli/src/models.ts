import { exitCodes, runModels } from './models-command';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    // The second signal does not wait for the clean-up.
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    stop.abort();
  });

const { env, stdout, stderr } = process;
void runModels(process.argv.slice(2), { env, stdout, stderr, signal: stop.signal }).then((code) => {
  process.exitCode = code;
});
