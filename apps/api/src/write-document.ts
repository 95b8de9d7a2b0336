import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { errorsPage } from './docs/errors-page';
import { serializeDocument } from './serialize-document';

/** `npm run openapi`: writes the committed document, and the page of its errors. */
async function main(): Promise<void> {
  const [file = 'openapi.json'] = process.argv.slice(2);
  writeFileSync(file, await serializeDocument());
  writeFileSync('docs/errors.md', errorsPage());
  console.log(`Wrote ${file} and docs/errors.md.`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack ?? error.message}\n`);
  process.exit(1);
});
