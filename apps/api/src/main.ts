import './thread-pool';
import 'reflect-metadata';
import { ConfigError, loadConfig } from '@app/config';
import { DatabaseUnusableError } from '@app/database';
import { JsonLogger } from '@app/observability';
import { exitWithParent, keepDataPrivate, misconfiguredExitCode } from '@app/process';
import { createApi } from './create-api';

async function main(): Promise<void> {
  exitWithParent();
  const config = loadConfig(process.env);
  keepDataPrivate(config.dataDir);
  const app = await createApi(config);
  await app.listen(config.port, config.host);
  app.get(JsonLogger).log('api is listening', { url: await app.getUrl() });
}

main().catch((error: Error & { code?: string }) => {
  const isPlain = error instanceof ConfigError || error instanceof DatabaseUnusableError || error.code !== undefined;
  process.stderr.write(`The api could not start: ${isPlain ? error.message : error.stack}\n`);
  process.exit(error instanceof ConfigError ? misconfiguredExitCode : 1);
});
