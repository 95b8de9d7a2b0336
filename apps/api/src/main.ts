import 'reflect-metadata';
import { ConfigError, loadConfig } from '@app/config';
import { JsonLogger } from '@app/logging';
import { createApi } from './create-api';

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const app = await createApi(config);
  await app.listen(config.port, config.host);
  app.get(JsonLogger).log('api is listening', { url: await app.getUrl() });
}

main().catch((error: Error & { code?: string }) => {
  const reason = error.code === 'EADDRINUSE' ? `The port is in use: ${error.message}.` : error.message;
  process.stderr.write(`${error instanceof ConfigError || error.code ? reason : (error.stack ?? reason)}\n`);
  process.exit(1);
});
