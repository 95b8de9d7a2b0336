import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

/** Writes `src/schema.ts`, the types of the service's document, before the client is compiled or checked. */
const document = join(import.meta.dirname, '..', '..', 'openapi.json');
const file = join(import.meta.dirname, 'src', 'schema.ts');
const text = COMMENT_HEADER + astToString(await openapiTS(pathToFileURL(document)));
// A build is out of date when a source is newer.
if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
