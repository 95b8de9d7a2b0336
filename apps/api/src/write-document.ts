import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { serializeDocument } from './serialize-document';

/** `npm run openapi`: writes the committed document. */
async function main(): Promise<void> {
  const [file = 'openapi.json'] = process.argv.slice(2);
  writeFileSync(file, await serializeDocument());
  console.log(`Wrote ${file}.`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack ?? error.message}\n`);
  process.exit(1);
});
