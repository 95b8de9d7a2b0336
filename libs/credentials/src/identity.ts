import { constants, type KeyObject, sign, type SignKeyObjectInput, verify, type X509Certificate } from 'node:crypto';
import { CredentialsError } from './errors';
import { certificatesIn, keyIn } from './pem';
import { posted } from './posted';

/** Who signs, and how. Files are PEM. */
export interface Signing {
  /** The certificate of the signer, then those that lead from it to its authority. */
  certificate: string;
  /** The private key of the first certificate; undefined where `signer` has it. */
  key?: string;
  /** URL of what signs in place of a key: bytes are posted, and their signature is answered, as COSE has it. */
  signer?: string;
  /** URL of a time stamp server (RFC 3161). */
  timeStamp?: string;
}

/** How a key signs. Source: RFC 9053, 2, RFC 8230, 2; C2PA Technical Specification 2.2, 13.2.1. */
interface Algorithm {
  name: 'es256' | 'es384' | 'ps256' | 'ed25519';
  /** Of COSE. */
  id: number;
  hash: 'sha256' | 'sha384' | null;
  options: Omit<SignKeyObjectInput, 'key'>;
}

const ecdsa = { dsaEncoding: 'ieee-p1363' } as const;
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
const algorithms = {
  es256: { name: 'es256', id: -7, hash: 'sha256', options: ecdsa },
  es384: { name: 'es384', id: -35, hash: 'sha384', options: ecdsa },
  ps256: { name: 'ps256', id: -37, hash: 'sha256', options: pss },
  ed25519: { name: 'ed25519', id: -8, hash: null, options: {} },
} as const satisfies Record<Algorithm['name'], Algorithm>;

/** A signer: its certificates, and what signs with the key of the first. */
export interface Identity {
  /** DER. */
  chain: Buffer[];
  algorithm: Algorithm;
  sign(bytes: Buffer): Promise<Buffer>;
}

/**
 * The identity as its files are now: a renewed certificate needs no restart.
 * @throws CredentialsError
 */
export async function readIdentity({ certificate, key, signer }: Signing): Promise<Identity> {
  const chain = await certificatesIn({ path: certificate, name: 'The file of CREDENTIALS_CERTIFICATE' });
  const [leaf] = chain;
  assertInForce(leaf);
  const algorithm = algorithmOf(leaf.publicKey);
  const privateKey = key === undefined ? undefined : await keyIn({ path: key, name: 'The file of CREDENTIALS_KEY' });
  if (privateKey && !leaf.checkPrivateKey(privateKey))
    throw new CredentialsError('CREDENTIALS_KEY is not the key of the first certificate in CREDENTIALS_CERTIFICATE.');
  const { hash, options } = algorithm;
  const signed = async (bytes: Buffer): Promise<Buffer> => {
    if (privateKey) return sign(hash, bytes, { key: privateKey, ...options });
    const signature = await posted(signer!, bytes, 'application/octet-stream', 'CREDENTIALS_SIGNER');
    if (verify(hash, bytes, { key: leaf.publicKey, ...options }, signature)) return signature;
    throw new CredentialsError(
      'What CREDENTIALS_SIGNER answers is no signature by the key of the first certificate in CREDENTIALS_CERTIFICATE.',
    );
  };
  return { chain: chain.map(({ raw }) => raw), algorithm, sign: signed };
}

function assertInForce({ validFrom, validTo }: X509Certificate): void {
  const [from, to] = [new Date(validFrom), new Date(validTo)];
  const which = 'The first certificate in CREDENTIALS_CERTIFICATE';
  if (to.getTime() < Date.now()) throw new CredentialsError(`${which} has expired on ${to.toISOString()}.`);
  if (from.getTime() > Date.now()) throw new CredentialsError(`${which} is valid only from ${from.toISOString()}.`);
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): Algorithm {
  if (type === 'ed25519') return algorithms.ed25519;
  if (type === 'ec' && details?.namedCurve === 'prime256v1') return algorithms.es256;
  if (type === 'ec' && details?.namedCurve === 'secp384r1') return algorithms.es384;
  if ((type === 'rsa' || type === 'rsa-pss') && details!.modulusLength! >= 2048) return algorithms.ps256;
  throw new CredentialsError(
    'The key of the first certificate in CREDENTIALS_CERTIFICATE must be of P-256, P-384, RSA with 2048 bits or more, or Ed25519.',
  );
}
