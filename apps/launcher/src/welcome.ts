import { relative } from 'node:path';
import { signInCodeMs } from '@app/domain';
import type { Started } from './launcher';

/**
 * The address to open, and commands to paste that draw the first picture. They read the key from its file, which keeps
 * it out of logs and shell history. The code stands behind a `#`, because a browser does not send that part, so no
 * server or proxy logs it.
 */
export function welcome({ url, publicUrl, key }: Started): string {
  const file = shortest(key.file);
  const token = key.token ? `$(cat ${quote(file)})` : '<your key>';
  const authorization = `-H "Authorization: Bearer ${token}"`;
  return [
    `Darkroom is ready at ${publicUrl}   (documentation: ${publicUrl}/docs)`,
    ...(key.signInCode
      ? [
          '',
          'Open this address to draw in your browser:',
          `  ${publicUrl}/#code=${key.signInCode}`,
          `It signs in the first browser that opens it, once, within ${signInCodeMs / 60_000} minutes.`,
          '',
        ]
      : []),
    key.token
      ? `Your API key is in ${file}`
      : `There is no usable API key in ${file}: make one with   npm run keys -- create --name me`,
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
    'Ctrl-C stops it.',
  ].join('\n');
}

/** A path relative to the folder in which the service was started. */
function shortest(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

/** A path quoted for the shell, also inside double quotes. */
function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
