import { shown } from './shown';

/** What the document says of a URL: http or https, and no port 0, to which nobody can connect. */
export const urlPattern = '^https?://(?![^/?#]*:0+(?:[/?#]|$))';

/** Characters that RFC 3986 allows in a URI; `URL` accepts and encodes others. */
const uriCharacters = /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[\da-f]{2})+$/i;

/** The first character that a URI does not have. */
function strangerIn(text: string): string {
  for (const found of text.matchAll(/%[\da-f]{2}|./gisu)) if (!uriCharacters.test(found[0])) return found[0];
  return text;
}

/** What is wrong with an absolute http or https URL, as the end of a sentence. */
export function urlProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return `must be a string, got ${shown(value)}`;
  if (value.length > maxLength) return `must be at most ${maxLength} characters, got ${value.length}`;
  const scheme = /^https?:\/\//i.exec(value)?.[0] ?? '';
  const host = value.slice(scheme.length).split(/[/?#]/, 1)[0];
  const rest = value.slice(scheme.length + host.length);
  // A host may have letters of any script (IDN).
  const isHost = host !== '' && !/[\s"<>\\^`{|}\p{C}]/u.test(host);
  if (!scheme || !isHost) return 'must be an absolute http or https URL';
  if (rest !== '' && !uriCharacters.test(rest))
    return `must have ${shown(strangerIn(rest))} percent-encoded, as a URL has it`;
  if (!URL.canParse(value)) return 'must be an absolute http or https URL, with a port up to 65535 if any';
  const url = new URL(value);
  if (url.port === '0') return 'must not have the port 0';
  return url.username || url.password ? 'must not contain a user name or password' : undefined;
}
