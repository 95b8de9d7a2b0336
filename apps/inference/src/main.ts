import 'reflect-metadata';
import { databaseUrlOf, loadConfig } from '@app/config';
import { JsonLogger } from '@app/observability';
import { endSignals, exitWithParent, failureToStart, keepDataPrivate, tellParentOfListening } from '@app/process';
import { createInference } from './create-inference';

async function main(): Promise<void> {
  exitWithParent();
  const config = loadConfig(process.env);
  keepDataPrivate(config.dataDir);
  const databaseUrl = databaseUrlOf(config);
  const logger = new JsonLogger('inference', config.logLevel);
  const context = await createInference({ config, databaseUrl, logger, onStall: () => void end() });
  context.enableShutdownHooks(endSignals);
  tellParentOfListening();

  /** Gives back what other engines draw, then ends by force: a regular exit would wait for the hanging thread. */
  async function end(): Promise<void> {
    await context.close().catch((error: Error) => logger.error('the process did not end in order', error));
    process.kill(process.pid, 'SIGKILL');
  }
}

main().catch((error: Error) => {
  const { text, exitCode } = failureToStart(error);
  process.stderr.write(`The inference process could not start: ${text}\n`);
  process.exit(exitCode);
});
