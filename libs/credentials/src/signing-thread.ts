import { parentPort } from 'node:worker_threads';
import { readManifests, signPicture, type SigningOrder } from './c2pa';
import { CredentialsError, IngredientError, readIdentity, type Signing } from './identity';
import { timeStampOf } from './time-stamp';

export interface SigningRequest {
  id: number;
  signing: Signing;
  order: SigningOrder;
  /** Whether what was signed is read again, to know that it holds. */
  isChecked: boolean;
}

/** A picture with its credentials, and why it has no time stamp where it should have one. */
export interface Signed {
  bytes: Uint8Array;
  note?: string;
}

interface Failed {
  error: string;
  isOfSigner: boolean;
  /** Whether the thread ends with it. */
  isLast: boolean;
  /** The one whose credentials cannot be worked with. */
  ingredient?: string;
}

export type SigningAnswer = { id: number } & (Signed | Failed);

async function signed({ order, signing, isChecked }: SigningRequest): Promise<Signed> {
  const identity = await readIdentity(signing);
  const { timeStamp } = signing;
  let note: string | undefined;
  const stamp = (signature: Buffer): Promise<Buffer | undefined> =>
    timeStampOf(signature, timeStamp!).catch((error: Error) => {
      note = error.message;
      return undefined;
    });
  const bytes = new Uint8Array(await signPicture(order, identity, timeStamp === undefined ? undefined : stamp));
  if (isChecked) await assertHolds(bytes, order.type);
  return { bytes, ...(note !== undefined && { note }) };
}

async function assertHolds(bytes: Uint8Array, type: string): Promise<void> {
  const found = await readManifests(bytes, type);
  if (!found) throw new CredentialsError('What is signed cannot be read back: it has no credentials.');
  if (found.validation_state !== 'Invalid') return;
  const codes = found.validation_status?.map(({ code }) => code).filter((code) => !code.endsWith('.untrusted'));
  throw new CredentialsError(`What is signed with CREDENTIALS_CERTIFICATE does not hold: ${codes?.join(', ')}.`);
}

async function answer(request: SigningRequest): Promise<void> {
  const { id } = request;
  try {
    const done = await signed(request);
    parentPort?.postMessage({ id, ...done } satisfies SigningAnswer, [done.bytes.buffer as ArrayBuffer]);
  } catch (error) {
    const isOfSigner = error instanceof CredentialsError;
    const ofIngredient = error instanceof IngredientError ? error : undefined;
    const { name, message } = ofIngredient?.cause ?? (error as Error);
    // The library has come to its end in the middle of something: the next picture gets a new thread.
    const isLast = name === 'RuntimeError';
    const failed = { error: message, isOfSigner, isLast, ...(ofIngredient && { ingredient: ofIngredient.id }) };
    parentPort?.postMessage({ id, ...failed } satisfies SigningAnswer);
    if (isLast) process.exit(1);
  }
}

parentPort?.on('message', (request: SigningRequest) => void answer(request));
