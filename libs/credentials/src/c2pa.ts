import { readFileSync } from 'node:fs';
import { initSync, WasmBuilder, WasmReader } from '@contentauth/c2pa-wasm';
import { coseSign1, reservedBytes } from './cose-sign1';
import { IngredientError } from './errors';
import type { Identity } from './identity';

/** A picture that was given. @see https://opensource.contentauthenticity.org/docs/manifest/json-ref/ */
export interface Ingredient {
  definition: { instance_id: string; title: string; relationship: 'parentOf' | 'inputTo'; [field: string]: unknown };
  /** Where it has credentials of its own, which are kept. */
  file?: { bytes: Uint8Array; type: string };
}

/** What a picture is to say, in the words of C2PA. */
export interface Manifest {
  claim_generator_info: { name: string; version: string }[];
  title: string;
  assertions: { label: string; data: unknown }[];
}

/** A picture to sign. */
export interface SigningOrder {
  bytes: Uint8Array;
  /** Such as `image/png`. */
  type: string;
  manifest: Manifest;
  ingredients: readonly Ingredient[];
}

/** What a picture says, as far as it is read here. */
export interface ManifestStore {
  active_manifest: string;
  manifests: Record<string, ReadManifest>;
  validation_state: 'Valid' | 'Invalid' | 'Trusted';
  validation_status?: { code: string }[];
  validation_results?: {
    activeManifest?: Partial<Record<'success' | 'informational' | 'failure', { code: string }[]>>;
  };
}

/** Certificates in PEM. */
export interface Trust {
  /** Of who signs: these alone, and none that they have issued. */
  signers: string;
  /** Authorities of time stamp servers. */
  clocks: string;
}

export interface ReadManifest {
  claim_generator_info?: { name: string; version?: string }[];
  assertions?: { label: string; data: unknown }[];
  ingredients?: { title?: string; relationship?: string; active_manifest?: string; validation_results?: unknown }[];
  signature_info?: { issuer?: string; common_name?: string; time?: string };
}

/** What is made of a given picture does not show it, in a thumbnail; and no address that a picture names is asked. */
const settings = {
  builder: { thumbnail: { enabled: false } },
  verify: { verify_after_sign: false, remote_manifest_fetch: false, ocsp_fetch: false },
};

const trusting = ({ signers, clocks }: Trust) => ({
  anchors: [
    { trust_kind: 'manifest', trust_uri: 'own', trust_anchors: '', allowed_list: signers },
    { trust_kind: 'tsa', trust_uri: 'own', trust_anchors: clocks },
  ],
});

/** The library asks a browser's worker for the bytes of a blob. */
class HeldBlob extends Blob {
  constructor(
    readonly held: Uint8Array,
    type: string,
  ) {
    super([], { type });
    Object.defineProperty(this, 'size', { value: held.length });
  }

  override slice(start = 0, end = this.held.length): HeldBlob {
    return new HeldBlob(this.held.subarray(Number(start), Number(end)), this.type);
  }
}

class FileReaderSync {
  readAsArrayBuffer({ held }: HeldBlob): ArrayBuffer {
    return new Uint8Array(held).buffer;
  }
}

Object.assign(globalThis, { FileReaderSync });
initSync({ module: readFileSync(require.resolve('@contentauth/c2pa-wasm/c2pa.wasm')) });

/** @returns the picture with its manifest. @throws CredentialsError, IngredientError */
export async function signPicture(
  { manifest, ingredients, ...picture }: SigningOrder,
  identity: Identity,
  stamp?: (bytes: Buffer) => Promise<Buffer | undefined>,
): Promise<Uint8Array> {
  const builder = WasmBuilder.fromJson(JSON.stringify(manifest), JSON.stringify(settings));
  // The library tells of a signer that fails no more than that it did.
  let failure: Error | undefined;
  const reserveSize = reservedBytes(identity, stamp !== undefined);
  const sign = async (claim: Uint8Array): Promise<Uint8Array<ArrayBuffer>> => {
    try {
      return new Uint8Array(await coseSign1(claim, identity, reserveSize, stamp));
    } catch (error) {
      failure = error as Error;
      throw error;
    }
  };
  try {
    for (const ingredient of ingredients) await addIngredient(builder, ingredient);
    const signer = { alg: identity.algorithm.name, reserveSize, sign };
    return await builder.sign(signer, [], picture.type, held(picture));
  } catch (error) {
    throw failure ?? errorOf(error);
  } finally {
    builder.free();
  }
}

async function addIngredient(builder: WasmBuilder, { definition, file }: Ingredient): Promise<void> {
  const text = JSON.stringify(definition);
  if (!file) return builder.addIngredient(text);
  await builder.addIngredientFromBlob(text, file.type, held(file)).catch((error: unknown) => {
    throw new IngredientError(definition.instance_id, errorOf(error));
  });
}

/** The library throws words, but for its own sudden end. */
const errorOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** What the library throws of a picture that has none: at most the address of where some are, which is not asked. */
const without = /^C2pa\((?:JumbfNotFound|RemoteManifestUrl)/;

/** @returns what a picture's manifests say, as the library tells it; undefined if it has none */
export async function readManifests(
  bytes: Uint8Array,
  type: string,
  trust?: Trust,
): Promise<ManifestStore | undefined> {
  const context = JSON.stringify({ ...settings, ...(trust && { trust: trusting(trust) }) });
  const reader = await WasmReader.fromBytes(type, bytes, context).catch((error: unknown) => {
    if (without.test(String(error))) return undefined;
    throw errorOf(error);
  });
  if (!reader) return undefined;
  try {
    return JSON.parse(reader.json()) as ManifestStore;
  } finally {
    reader.free();
  }
}

const held = ({ bytes, type }: { bytes: Uint8Array; type: string }): HeldBlob => new HeldBlob(bytes, type);
