import { existsSync } from 'node:fs';
import type { Trust } from './c2pa';
import { certificatesIn } from './pem';

/** Files in PEM, as the configuration names them. */
interface OwnFiles {
  /** What pictures are signed with now. Where nobody names it, it may be missing: they are signed elsewhere, or not. */
  ownCertificate: { path: string; isNamed: boolean };
  /** Others that they were signed with. */
  credentialsOwn?: string;
}

/**
 * The certificates by which a service knows its own pictures, as the files are now. Authorities among them are believed
 * about the time, and about nothing else: a public one has many customers.
 * @throws CredentialsError
 */
export async function ownCertificates({ ownCertificate, credentialsOwn }: OwnFiles): Promise<Trust> {
  const { path, isNamed } = ownCertificate;
  const now = isNamed ? 'The file of CREDENTIALS_CERTIFICATE' : 'The file credentials/certificate.pem in DATA_DIR';
  const others = credentialsOwn !== undefined && { path: credentialsOwn, name: 'The file of CREDENTIALS_OWN' };
  const found = [
    ...(isNamed || existsSync(path) ? await certificatesIn({ path, name: now }) : []),
    ...(others ? await certificatesIn(others) : []),
  ];
  const pemOf = (ofAuthorities: boolean): string =>
    found.flatMap((each) => (each.ca === ofAuthorities ? each.toString() : [])).join('');
  return { signers: pemOf(false), clocks: pemOf(true) };
}
