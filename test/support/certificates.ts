import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PictureSigner, PictureVerifier } from '@app/credentials';
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

const compiled = (file: string): string => resolve('dist', 'libs', 'credentials', 'src', file);
PictureSigner.threadFile = compiled('signing-thread.js');
PictureVerifier.processFile = compiled('verifying-process.js');

const rsa = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' };

/** Keys that may sign, as WebCrypto names them. */
export const keyKinds = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  PS256: { name: 'RSASSA-PKCS1-v1_5', ...rsa },
  Ed25519: { name: 'Ed25519' },
} as const;

/** Of a reader that knows nobody. */
export const noTrust = { signers: '', clocks: '' };

interface Wanted {
  kind?: keyof typeof keyKinds;
  /** Of its life. */
  days?: [from: number, to: number];
  /** What the certificate may be used for; by default what C2PA takes. */
  usage?: string;
}

/** Writes a certificate, with that of its authority, and its key. @returns their paths */
export async function writePair(
  folder: string,
  name: string,
  { kind = 'ES256', days: [from, to] = [-1, 30], usage = ExtendedKeyUsage.emailProtection }: Wanted = {},
): Promise<{ certificate: string; key: string }> {
  const ofAuthority = keyKinds.ES256;
  const make = (algorithm: object) =>
    webcrypto.subtle.generateKey(algorithm as webcrypto.EcKeyGenParams, true, ['sign', 'verify']);
  const [authority, own] = [await make(ofAuthority), await make(keyKinds[kind])];
  const at = (days: number): Date => new Date(Date.now() + days * 86_400_000);
  const life = { notBefore: at(from), notAfter: at(to) };
  const root = await X509CertificateGenerator.createSelfSigned({
    ...{ ...life, name: 'CN=An authority, O=A tester', keys: authority, signingAlgorithm: ofAuthority },
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const leaf = await X509CertificateGenerator.create({
    ...{ ...life, subject: 'CN=A signer, O=A tester', issuer: root.subject, signingAlgorithm: ofAuthority },
    ...{ publicKey: own.publicKey, signingKey: authority.privateKey },
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([usage], false),
      await AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const paths = { certificate: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) };
  writeFileSync(paths.certificate, `${leaf.toString('pem')}\n${root.toString('pem')}\n`);
  writeFileSync(paths.key, KeyObject.from(own.privateKey).export({ type: 'pkcs8', format: 'pem' }));
  return paths;
}
