import { relative } from 'node:path';
import type { Started } from './launcher';

/** What a person needs to draw the first picture: lines to paste, which read the key from its file and so leave it out of every log and history. */
export function welcome({ url, publicUrl, key }: Started): string {
  const file = shortest(key.file);
  const token = key.token ? `$(cat ${quote(file)})` : '<your key>';
  const authorization = `-H "Authorization: Bearer ${token}"`;
  return [
    `Darkroom is ready at ${publicUrl}   (documentation: ${publicUrl}/docs)`,
    key.token
      ? `Your API key is kept in ${file}`
      : `No usable API key is kept in ${file}: make one with   npm run keys -- create --name me`,
    '',
    'Draw a picture:',
    `  curl -s ${url}/v1/sd/text-to-image ${authorization} \\`,
    `    -H 'Content-Type: application/json' -d '{"prompt": "a red circle on a blue background"}'`,
    '',
    'Its address is in "images" once "status" is "succeeded". The newest one, saved as picture.png:',
    `  curl -s "${url}/v1/sd/text-to-image?limit=1" ${authorization} \\`,
    `    | grep -o '"images":\\["[^"]*' | cut -d '"' -f 4 | xargs curl -s -o picture.png`,
    '',
    'Or in one go:  npm run demo -- "a red circle on a blue background"',
    'Ctrl-C ends it.',
  ].join('\n');
}

/** A path as it is called from the folder in which the service was started. */
function shortest(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

/** A path as the shell reads it back, also between double quotes. */
function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
