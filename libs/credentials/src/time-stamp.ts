import { createHash, randomBytes } from 'node:crypto';
import { CredentialsError } from './errors';
import { posted } from './posted';

const variable = 'CREDENTIALS_TIME_STAMP';
/** Of a token with the certificates of its server: several times what one takes. Each signature leaves as much room. */
export const mostTimeStampBytes = 12_000;
/** Of a request: version 1, and a SHA-256 that follows. Source: RFC 3161, 2.4.1. */
const requestHead = Buffer.from('020101' + '3031' + '300d06096086480165030402010500' + '0420', 'hex');

/** @returns a token of the server that this was there. @throws CredentialsError */
export async function timeStampOf(bytes: Buffer, url: string): Promise<Buffer> {
  const hash = createHash('sha256').update(bytes).digest();
  // A nonce of a positive number, and the wish for the server's certificates.
  const fields = [requestHead, hash, Buffer.from('020901', 'hex'), randomBytes(8), Buffer.from('0101ff', 'hex')];
  const request = Buffer.concat([Buffer.from([0x30, Buffer.concat(fields).length]), ...fields]);
  return tokenIn(await posted(url, request, 'application/timestamp-query', variable), hash);
}

/** The token of an answer: what follows its status. Source: RFC 3161, 2.4.2. */
function tokenIn(answer: Buffer, hash: Buffer): Buffer {
  const failed = (reason: string) => new CredentialsError(`${variable} does not do its part: ${reason}.`);
  const token = grantedIn(answer);
  if (!token) throw failed('it grants no time stamp');
  // A hash as an OCTET STRING; the token's own signature is for readers to check, who know whom to believe.
  if (!token.includes(Buffer.concat([Buffer.from('0420', 'hex'), hash])))
    throw failed('its time stamp is not of what was asked');
  if (token.length > mostTimeStampBytes)
    throw failed(`its time stamp has ${token.length} bytes, and there is room for ${mostTimeStampBytes}`);
  return token;
}

function grantedIn(answer: Buffer): Buffer | undefined {
  try {
    const { start, end } = contentAt(answer, 0);
    const status = contentAt(answer, start);
    const value = answer[contentAt(answer, status.start).start];
    // 0 is granted, 1 granted with changes.
    return value <= 1 && status.end < end ? answer.subarray(status.end, end) : undefined;
  } catch {
    // No DER.
    return undefined;
  }
}

/** Where the content of a DER value begins and ends. Source: X.690, 8.1.3. */
function contentAt(der: Buffer, at: number): { start: number; end: number } {
  const first = der.readUInt8(at + 1);
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + lengthBytes;
  const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes);
  if (start + length > der.length) throw new RangeError('The value is cut off.');
  return { start, end: start + length };
}
