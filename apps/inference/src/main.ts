import 'reflect-metadata';
import { ConfigError, loadConfig } from '@app/config';
import { DatabaseUnusableError } from '@app/database';
import { JsonLogger } from '@app/observability';
import { endSignals, exitWithParent, keepDataPrivate, ListenError, misconfiguredExitCode } from '@app/process';
import { createInference } from './create-inference';
import { DeviceUnavailableError } from './engine/device/device';

async function main(): Promise<void> {
  exitWithParent();
  const config = loadConfig(process.env);
  keepDataPrivate(config.dataDir);
  const { databaseUrl } = config;
  if (!databaseUrl) throw new ConfigError(['DATABASE_URL is needed; "npm start" brings a database of its own.']);
  const logger = new JsonLogger('inference', config.logLevel);
  const context = await createInference({ config, databaseUrl, logger, onStall: () => void end() });
  context.enableShutdownHooks(endSignals);

  /** Gives back what other engines draw, then ends by force: a regular exit would wait for the hanging thread. */
  async function end(): Promise<void> {
    await context.close().catch((error: Error) => logger.error('the process did not end in order', error));
    process.kill(process.pid, 'SIGKILL');
  }
}

main().catch((error: Error & { code?: string }) => {
  const plainErrors = [ConfigError, DatabaseUnusableError, DeviceUnavailableError];
  const isPlain = plainErrors.some((type) => error instanceof type) || error.code !== undefined;
  process.stderr.write(`The inference process could not start: ${isPlain ? error.message : error.stack}\n`);
  if (error instanceof ListenError) process.exit(error.exitCode);
  const isMisconfigured = error instanceof ConfigError || error instanceof DeviceUnavailableError;
  process.exit(isMisconfigured ? misconfiguredExitCode : 1);
});
