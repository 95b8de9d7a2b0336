import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CredentialsError } from './errors';

/** A file in PEM. */
interface PemFile {
  path: string;
  /** For errors, such as `The file of CREDENTIALS_KEY`. */
  name: string;
}

/** @throws CredentialsError */
export async function certificatesIn(file: PemFile): Promise<X509Certificate[]> {
  const found = (await textOf(file)).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    if (found.length > 0) return found.map((each) => new X509Certificate(each));
  } catch {
    // It looks like a certificate, and is none.
  }
  throw new CredentialsError(`${file.name} has no certificates in PEM.`);
}

/** @throws CredentialsError */
export async function keyIn(file: PemFile): Promise<KeyObject> {
  const text = await textOf(file);
  try {
    return createPrivateKey(text);
  } catch {
    throw new CredentialsError(`${file.name} has no private key in PEM, or one with a password.`);
  }
}

async function textOf({ path, name }: PemFile): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CredentialsError(`${name} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}
