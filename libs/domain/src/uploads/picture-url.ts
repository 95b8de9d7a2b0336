import { isIdentifier } from '../common/identifier';

/** The public URL of a stored picture: only those who were given it know its token. */
export function pictureUrl(publicUrl: string, { token, storageKey }: { token: string; storageKey: string }): string {
  return `${publicUrl}/images/${token}.${storageKey.slice(storageKey.lastIndexOf('.') + 1)}`;
}

const thumbnailEnd = '.thumbnail.webp';

/** Storage key of a picture's thumbnail. */
export const thumbnailKeyOf = (storageKey: string): string => storageKey.replace(/\.\w+$/, thumbnailEnd);

/** The public URL of a picture's thumbnail. */
export const thumbnailUrl = (publicUrl: string, token: string): string => `${publicUrl}/images/${token}${thumbnailEnd}`;

/** What a URL says about a picture that may be stored here. */
export interface NamedToken {
  /** Empty where the URL leads to something else of this service. */
  token: string;
  /** Whether the URL is below PUBLIC_URL. Otherwise it may lead here by another name: the token's row decides. */
  isHere: boolean;
}

/** The token in a URL that leads to this service, or has the form of its pictures' URLs; undefined for any other. */
export function namedToken(publicUrl: string, url: string): NamedToken | undefined {
  const [ours, sent] = [URL.parse(publicUrl), URL.parse(url)];
  if (!sent) return undefined;
  const folder = `${ours?.pathname.replace(/\/$/, '') ?? ''}/images/`;
  const isHere = ours?.origin === sent.origin;
  const [, token = ''] = /\/images\/([\w-]+)\.\w+$/.exec(sent.pathname) ?? [];
  if (isIdentifier(token) && (!isHere || sent.pathname.startsWith(folder))) return { token, isHere };
  return isHere ? { token: '', isHere } : undefined;
}
