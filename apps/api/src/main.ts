import './thread-pool';
import 'reflect-metadata';
import { loadConfig } from '@app/config';
import { JsonLogger } from '@app/observability';
import { exitWithParent, failureToStart, keepDataPrivate, ListenError, tellParentOfListening } from '@app/process';
import { createApi } from './create-api';

async function main(): Promise<void> {
  exitWithParent();
  const config = loadConfig(process.env);
  keepDataPrivate(config.dataDir);
  const app = await createApi(config);
  const { port, host } = config;
  // Separate from `listen`, whose failures are explained as such.
  await app.init();
  await app.listen(port, host).catch((error: Error) => {
    throw new ListenError(error, { variable: 'PORT', port, host, hostVariable: 'HOST' });
  });
  app.get(JsonLogger).log('api is listening', { url: await app.getUrl() });
  tellParentOfListening();
}

main().catch((error: Error) => {
  const { text, exitCode } = failureToStart(error);
  process.stderr.write(`The api could not start: ${text}\n`);
  process.exit(exitCode);
});
