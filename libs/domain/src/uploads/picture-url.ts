import { isIdentifier } from '../common/identifier';

interface Stored {
  token: string;
  storageKey: string;
}

/** The last part of a picture's URL. */
export function pictureFile({ token, storageKey }: Stored): string {
  return `${token}.${storageKey.slice(storageKey.lastIndexOf('.') + 1)}`;
}

/** The public URL of a stored picture: only those who were given it know its token. */
export function pictureUrl(publicUrl: string, stored: Stored): string {
  return `${publicUrl}/images/${pictureFile(stored)}`;
}

const thumbnailEnd = '.thumbnail.webp';

/** Storage key of a picture's thumbnail. */
export const thumbnailKeyOf = (storageKey: string): string => storageKey.replace(/\.\w+$/, thumbnailEnd);

/** The last part of the URL of a picture's thumbnail. */
export const thumbnailFile = (token: string): string => `${token}${thumbnailEnd}`;

/** The parameter of a presigned URL of the store that names the picture. */
export const pictureParameter = 'x-darkroom-picture';

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
  const [, presigned = ''] = /^([\w-]+)\.\w+$/.exec(sent.searchParams.get(pictureParameter) ?? '') ?? [];
  if (isIdentifier(presigned)) return { token: presigned, isHere };
  const [, token = ''] = /\/images\/([\w-]+)\.\w+$/.exec(sent.pathname) ?? [];
  if (isIdentifier(token) && (!isHere || sent.pathname.startsWith(folder))) return { token, isHere };
  return isHere ? { token: '', isHere } : undefined;
}
