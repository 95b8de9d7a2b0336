import { createHash, randomBytes } from 'node:crypto';
import { CredentialsError, posted } from './identity';

const timeStampMs = 10_000;
/** Of a request: version 1, and a SHA-256 that follows. Source: RFC 3161, 2.4.1. */
const requestHead = Buffer.from('020101' + '3031' + '300d06096086480165030402010500' + '0420', 'hex');

/** @returns a token of the server that this was there. @throws CredentialsError */
export async function timeStampOf(bytes: Buffer, url: string): Promise<Buffer> {
  const hash = createHash('sha256').update(bytes).digest();
  // A nonce of a positive number, and the wish for the server's certificates.
  const fields = [requestHead, hash, Buffer.from('020901', 'hex'), randomBytes(8), Buffer.from('0101ff', 'hex')];
  const request = Buffer.concat([Buffer.from([0x30, Buffer.concat(fields).length]), ...fields]);
  const asked = { type: 'application/timestamp-query', ms: timeStampMs };
  return tokenIn(await posted(url, request, asked, 'CREDENTIALS_TIME_STAMP'));
}

/** The token of an answer: what follows its status. Source: RFC 3161, 2.4.2. */
function tokenIn(answer: Buffer): Buffer {
  const refused = new CredentialsError('CREDENTIALS_TIME_STAMP does not do its part: it grants no time stamp.');
  try {
    const { start, end } = contentAt(answer, 0);
    const status = contentAt(answer, start);
    const value = answer[contentAt(answer, status.start).start];
    // 0 is granted, 1 granted with changes.
    if (value <= 1 && status.end < end) return answer.subarray(status.end, end);
  } catch {
    // No DER.
  }
  throw refused;
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
