import { parentPort } from 'node:worker_threads';
import { type ManifestStore, readManifests, signPicture, type SigningOrder } from './c2pa';
import { CredentialsError, IngredientError } from './errors';
import { type Identity, readIdentity, type Signing } from './identity';
import { sourceTypes } from './picture-report';
import { timeStampOf } from './time-stamp';

export interface SigningRequest {
  id: number;
  signing: Signing;
  /** Undefined where it is only asked whether anything can be signed. */
  order: SigningOrder | undefined;
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

/** A black pixel, and the least that can be said of it. */
const sample: SigningOrder = {
  bytes: Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==',
    'base64',
  ),
  type: 'image/png',
  manifest: {
    claim_generator_info: [{ name: 'check', version: '1' }],
    title: 'check',
    assertions: [
      {
        label: 'c2pa.actions.v2',
        data: { actions: [{ action: 'c2pa.created', digitalSourceType: `${sourceTypes}digitalCreation` }] },
      },
    ],
  },
  ingredients: [],
};

/** The certificates with which a sample was signed that holds. */
let checked: Buffer | undefined;

async function signed({ order, signing }: SigningRequest): Promise<Signed> {
  const identity = await readIdentity(signing);
  const certificates = Buffer.concat(identity.chain);
  // C2PA forbids certificates that can sign very well, and files may be replaced at any moment.
  if (!order || !checked?.equals(certificates)) {
    assertHolds(await readManifests((await signedBy(identity, sample)).bytes, sample.type));
    checked = certificates;
  }
  return order ? signedBy(identity, order, signing.timeStamp) : { bytes: new Uint8Array() };
}

async function signedBy(identity: Identity, order: SigningOrder, timeStamp?: string): Promise<Signed> {
  let note: string | undefined;
  const stamp = (signature: Buffer): Promise<Buffer | undefined> =>
    timeStampOf(signature, timeStamp!).catch((error: Error) => {
      note = error.message;
      return undefined;
    });
  const bytes = new Uint8Array(await signPicture(order, identity, timeStamp === undefined ? undefined : stamp));
  return { bytes, ...(note !== undefined && { note }) };
}

function assertHolds(found: ManifestStore | undefined): void {
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
