import { createHash } from 'node:crypto';
import { shortHash, weightsName } from '@app/model-store';
import type { FinetuneWeights } from '../engine/engine-protocol';

/** An installed model, and a Fine-Tune's weights that are merged into it. */
interface Merged {
  name: string;
  hash: string;
  weights?: Pick<FinetuneWeights, 'kind' | 'hash' | 'scale' | 'token'> | undefined;
}

/** By which an engine knows them: `<model>@<hash>`, and `+<kind>:<hash>:<token>` of a Fine-Tune's weights, in full. */
export function keyOf({ name, hash, weights }: Merged): string {
  const base = `${name}@${hash}`;
  return weights ? `${base}+${weights.kind}:${hashAsMerged(weights)}:${weights.token}` : base;
}

/**
 * By which a record names them: `<model>@<hash>`, and `+<hash>` of a Fine-Tune's weights. Equal names are of equal
 * weights.
 */
export function servedByOf({ name, hash, weights }: Merged): string {
  const base = weightsName({ name, hash });
  return weights ? `${base}+${shortHash(hashAsMerged(weights))}` : base;
}

/** That of the file, unless it is merged with another scale than 1. A textual inversion has no scale. */
function hashAsMerged({ kind, hash, scale }: NonNullable<Merged['weights']>): string {
  if (kind === 'textual_inversion' || scale === 1) return hash;
  return createHash('sha256').update(`${hash}*${scale}`).digest('hex');
}
