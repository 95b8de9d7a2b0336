import { isIdentifier } from '../common/identifier';

/** The public URL of a picture that the service has: only those who were given it know its token. */
export function pictureUrl(publicUrl: string, { token, storageKey }: { token: string; storageKey: string }): string {
  return `${publicUrl}/images/${token}.${storageKey.slice(storageKey.lastIndexOf('.') + 1)}`;
}

/**
 * The token in the URL of a picture of this service; empty if it leads to something else here, and undefined if it
 * leads elsewhere.
 */
export function pictureToken(publicUrl: string, url: string): string | undefined {
  const [ours, sent] = [URL.parse(publicUrl), URL.parse(url)];
  if (!ours || !sent || ours.origin !== sent.origin) return undefined;
  const folder = `${ours.pathname.replace(/\/$/, '')}/images/`;
  const [token] = sent.pathname.startsWith(folder) ? sent.pathname.slice(folder.length).split('.') : [''];
  return isIdentifier(token) ? token : '';
}
