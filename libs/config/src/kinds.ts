import { resolve } from 'node:path';

/** Why a value is rejected. The reason follows the variable's name in the message. */
export class InvalidValue {
  constructor(readonly reason: string) {}
}

/** Parses the value of a variable. */
export type Kind<T> = (raw: string) => T | InvalidValue;

/** Any text, or only text that passes a test. */
export const text =
  (passes: (raw: string) => boolean = () => true, accepted = ''): Kind<string> =>
  (raw) =>
    passes(raw) ? raw : new InvalidValue(`must be ${accepted}.`);

/** A file or folder, where it is for this process. */
export const path: Kind<string> = (raw) => resolve(raw);

export const integer =
  (min: number, max: number): Kind<number> =>
  (raw) => {
    const value = Number(raw);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    return new InvalidValue(`must be an integer from ${min} to ${max}, got "${raw}".`);
  };

export const oneOf =
  <T extends string>(...values: readonly T[]): Kind<T> =>
  (raw) =>
    values.find((value) => value === raw) ?? new InvalidValue(`must be one of ${values.join(', ')}, got "${raw}".`);

export const flag: Kind<boolean> = (raw) => {
  const word = raw.toLowerCase();
  if (['1', 'true', 'on', 'yes'].includes(word)) return true;
  if (['0', 'false', 'off', 'no'].includes(word)) return false;
  return new InvalidValue(`must be true or false, got "${word}".`);
};

/** A URL; trailing slashes are removed. */
export const url =
  (...protocols: readonly string[]): Kind<string> =>
  (raw) => {
    if (URL.canParse(raw) && protocols.includes(new URL(raw).protocol)) return raw.replace(/(?<!\/)\/+$/, '');
    return new InvalidValue(`must be a ${protocols.map((protocol) => `${protocol}//`).join(' or ')} URL.`);
  };

/** An http(s) URL that logs and answers may show: one with a password in it is refused, and not repeated. */
export const plainUrl: Kind<string> = (raw) => {
  const found = url('http:', 'https:')(raw);
  if (found instanceof InvalidValue) return found;
  const { username, password } = new URL(found);
  if (username === '' && password === '') return found;
  return new InvalidValue('must be a URL without a user and a password.');
};

/** Where callers reach the service, in the normal form of URLs and without trailing slashes. */
export const publicUrl: Kind<string> = (raw) => {
  if (/^https?:\/\/[^\s\\?#@]+$/i.test(raw) && URL.canParse(raw)) return new URL(raw).href.replace(/(?<!\/)\/+$/, '');
  return new InvalidValue(
    'must be an http:// or https:// URL with a host, maybe a port and a path, and nothing else: no user, ? or #.',
  );
};

/** The URL of Redis, maybe with the number of a database. */
export const redisUrl: Kind<string> = (raw) => {
  if (/^rediss?:\/\/[^/?#]+(?:\/\d*)?(?:\?.*)?$/.test(raw) && URL.canParse(raw)) return raw.replace(/\/$/, '');
  return new InvalidValue(
    'must be a redis:// or rediss:// URL, maybe with the number of a database: redis://host:6379/0.',
  );
};

/** A database's URL. A password may contain a character that would end it by mistake; such a URL is refused. */
export const databaseUrl: Kind<string> = (raw) => {
  const found = url('postgres:', 'postgresql:')(raw);
  const [, authority = '', path = ''] = /^\w+:\/\/([^/?#]*)([^?]*)/.exec(raw) ?? [];
  const isCut = raw.includes('#') || (path.includes('@') && !authority.includes('@'));
  const isUnclear = isCut || (found instanceof InvalidValue && raw.includes('@'));
  if (!isUnclear && !/\s|%(?![\da-f]{2})/i.test(authority)) return found;
  return new InvalidValue(
    'must be a postgres:// URL whose user and password are percent-encoded: # is %23, / is %2F, ? is %3F, @ is %40, % is %25, a space is %20.',
  );
};

/** Comma-separated `name=model`; a `*` in the name stands for any characters. */
export const aliases: Kind<string[]> = (raw) => {
  const pairs = raw.split(',').map((pair) => pair.trim());
  if (pairs.every((pair) => /^[a-z0-9*][a-z0-9*._-]*=[a-z0-9][a-z0-9._-]*$/.test(pair))) return pairs;
  return new InvalidValue(
    `must be names and the models that they mean, such as gpt-image-*=default,dall-e-3=klein, got "${raw}".`,
  );
};

/** Comma-separated origins, such as `https://app.example`, or `*` alone for any. */
export const origins: Kind<string[]> = (raw) => {
  const names = raw.split(',').map((name) => name.trim());
  const isOrigin = (name: string): boolean =>
    /^https?:/.test(name) && URL.canParse(name) && new URL(name).origin === name;
  if (raw === '*' || names.every(isOrigin)) return names;
  return new InvalidValue(
    `must be *, or origins such as https://app.example (several with commas, without a path), got "${raw}".`,
  );
};

/** `auto`, or comma-separated devices, each once. */
export const devices: Kind<'auto' | ('cpu' | 'webgpu' | `cuda:${number}`)[]> = (raw) => {
  if (raw === 'auto') return 'auto';
  const names = raw.split(',').map((name) => name.trim());
  if (
    names.every((name) => name === 'cpu' || name === 'webgpu' || /^cuda:\d+$/.test(name)) &&
    new Set(names).size === names.length
  )
    return names as ('cpu' | 'webgpu' | `cuda:${number}`)[];
  return new InvalidValue(`must be auto, cpu, webgpu or cuda:<n> (several with commas, each once), got "${raw}".`);
};

/** Some of several words, with commas, each once. */
export const someOf =
  <T extends string>(...values: readonly T[]): Kind<readonly T[]> =>
  (raw) => {
    const words = raw.split(',').map((word) => word.trim());
    const known = values.filter((value) => words.includes(value));
    if (known.length === words.length) return known;
    return new InvalidValue(`must be one or more of ${values.join(', ')} (with commas, each once), got "${raw}".`);
  };
