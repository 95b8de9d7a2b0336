import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** 32 random bytes in base64url. */
const codePattern = /^[A-Za-z0-9_-]{43}$/;
/** Of AES-256-GCM. */
const ivBytes = 12;
const tagBytes = 16;

/** How long a code may be used. */
export const signInCodeMs = 30 * 60_000;

/**
 * A code that signs one browser in. The row has only its hash, and the key's token encrypted with the code: who reads
 * the table learns neither.
 */
@Entity('sign_in_codes')
export class SignInCode {
  /** SHA-256 of the code: 32 bytes. The code is random, so no slow hash is needed. */
  @PrimaryColumn('bytea') hash: Buffer;

  /** The encrypted token: initialisation vector, tag, text. */
  @Column('bytea') sealedToken: Buffer;
  @Column({ type: 'timestamptz' }) expiresAt: Date;
}

/** Makes a code for a token, and its row. */
export function newSignInCode(token: string): { code: string; row: SignInCode } {
  const code = randomBytes(32).toString('base64url');
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', keyOf(code), iv);
  const text = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()]);
  const row = Object.assign(new SignInCode(), {
    hash: hash('sha256', code, 'buffer'),
    sealedToken: Buffer.concat([iv, cipher.getAuthTag(), text]),
    expiresAt: new Date(Date.now() + signInCodeMs),
  });
  return { code, row };
}

/** The key that finds the row of a code; undefined for a text that cannot be one. */
export function hashOfSignInCode(code: string): Buffer | undefined {
  return codePattern.test(code) ? hash('sha256', code, 'buffer') : undefined;
}

/** @throws Error if the code is not the one that the token was encrypted with. */
export function openSealedToken(code: string, sealed: Buffer): string {
  const decipher = createDecipheriv('aes-256-gcm', keyOf(code), sealed.subarray(0, ivBytes));
  decipher.setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
  return decipher.update(sealed.subarray(ivBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8');
}

/** Differs from the hash that is stored. */
function keyOf(code: string): Buffer {
  return Buffer.from(hkdfSync('sha256', code, '', 'sealed token', 32));
}
