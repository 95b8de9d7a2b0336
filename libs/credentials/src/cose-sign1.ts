import { cbor } from './cbor';
import type { Identity } from './identity';
import { mostTimeStampBytes } from './time-stamp';

/** Labels of COSE's headers. Sources: RFC 9052, 3.1; RFC 9360, 2. */
const [algorithmLabel, chainLabel] = [1, 33];
const tag = 18;
/** Of what surrounds a signature, with some room. */
const surroundingBytes = 800;

/** Bytes that a manifest has to leave for a signature. */
export function reservedBytes({ chain }: Identity, isTimeStamped: boolean): number {
  const certificates = chain.reduce((sum, { length }) => sum + length + 4, 0);
  // No signature is longer than the certificate of its key.
  return surroundingBytes + chain[0].length + certificates + (isTimeStamped ? mostTimeStampBytes : 0);
}

/**
 * A COSE_Sign1 of a claim, which stands beside it.
 * @param stamp a time stamp's token of bytes, if there is to be one
 * @param size of the result in bytes, to which it is padded
 * @throws CredentialsError
 */
export async function coseSign1(
  claim: Uint8Array,
  identity: Identity,
  size: number,
  stamp?: (bytes: Buffer) => Promise<Buffer | undefined>,
): Promise<Buffer> {
  const { chain, algorithm } = identity;
  const headers = cbor.bytes(
    cbor.map(
      [cbor.integer(algorithmLabel), cbor.integer(algorithm.id)],
      [cbor.integer(chainLabel), cbor.array(...chain.map(cbor.bytes))],
    ),
  );
  const toSign = (context: string, payload: Uint8Array): Buffer =>
    cbor.array(cbor.text(context), headers, cbor.bytes(Buffer.alloc(0)), cbor.bytes(payload));
  const signature = cbor.bytes(await identity.sign(toSign('Signature1', claim)));
  // Source: C2PA Technical Specification 2.2, 10.3.2.5.4, "sigTst2", as C2PA's own library reads it.
  const token = await stamp?.(toSign('CounterSignature', signature));
  const stamped =
    token && cbor.map([cbor.text('tstTokens'), cbor.array(cbor.map([cbor.text('val'), cbor.bytes(token)]))]);
  const whole = (padding: number): Buffer => {
    const pad: [Buffer, Buffer] = [cbor.text('pad'), cbor.bytes(Buffer.alloc(padding))];
    const open = cbor.map(...(stamped ? [[cbor.text('sigTst2'), stamped] as [Buffer, Buffer]] : []), pad);
    return cbor.tagged(tag, cbor.array(headers, open, cbor.null, signature));
  };
  // A length takes three bytes where the padding is longer than 255 bytes, as it is here.
  const least = 256;
  const padding = size - whole(least).length + least;
  if (padding < least) throw new Error(`The signature needs ${least - padding} bytes more than were reserved.`);
  return whole(padding);
}
