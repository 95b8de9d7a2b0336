import 'reflect-metadata';
import { createPrivateKey, KeyObject, webcrypto, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '@app/process';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const [dayMs, lifeDays, leftDays] = [86_400_000, 3_650, 30];
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const organisation = 'O=Darkroom (self-made)';

/** Files in PEM. */
export interface OwnPair {
  certificate: string;
  key: string;
}

/**
 * The pair that a service has made for itself, in a folder: made where there is none that lasts another month. An
 * authority, whose key is thrown away, has signed it, as C2PA wants.
 * @param say told why one that is there is replaced
 */
export async function ensureOwnPair(folder: string, say: (text: string) => void): Promise<OwnPair> {
  const pair = { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
  if (existsSync(pair.certificate) && existsSync(pair.key)) {
    const problem = problemOf(readFileSync(pair.certificate), readFileSync(pair.key));
    if (problem === undefined) return pair;
    say(`Another certificate is made for Content Credentials: the one in ${folder} ${problem}.`);
  }
  makeFolder(folder, 0o700);
  const made = await makePair();
  // The key first: until its certificate stands beside it, the two do not fit, and are made again.
  for (const part of ['key', 'certificate'] as const) {
    const unfinished = `${pair[part]}.new`;
    rmSync(unfinished, { force: true });
    writeFileSync(unfinished, made[part], { mode: 0o600, flush: true });
    renameSync(unfinished, pair[part]);
  }
  return pair;
}

function problemOf(certificate: Buffer, key: Buffer): string | undefined {
  try {
    const leaf = new X509Certificate(certificate);
    if (new Date(leaf.validTo).getTime() - Date.now() < leftDays * dayMs) return 'ends soon';
    return leaf.checkPrivateKey(createPrivateKey(key)) ? undefined : 'has another key';
  } catch {
    return 'or its key is damaged';
  }
}

/** Source: C2PA Technical Specification 2.2, 14.5, "X.509 Certificates". */
async function makePair(): Promise<{ certificate: string; key: string }> {
  const make = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const [authority, leaf] = [await make(), await make()];
  // The clocks of two machines are not quite the same.
  const dates = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + lifeDays * dayMs) };
  const root = await X509CertificateGenerator.createSelfSigned({
    ...{ ...dates, name: `CN=Darkroom authority, ${organisation}`, keys: authority, signingAlgorithm: algorithm },
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const signer = await X509CertificateGenerator.create({
    ...{ ...dates, subject: `CN=Darkroom, ${organisation}`, issuer: root.subject, signingAlgorithm: algorithm },
    ...{ publicKey: leaf.publicKey, signingKey: authority.privateKey },
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.emailProtection], false),
      await SubjectKeyIdentifierExtension.create(leaf.publicKey),
      await AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const key = KeyObject.from(leaf.privateKey).export({ type: 'pkcs8', format: 'pem' }) as string;
  return { certificate: `${signer.toString('pem')}\n${root.toString('pem')}\n`, key };
}
