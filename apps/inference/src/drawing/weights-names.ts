import { createHash } from 'node:crypto';
import { type InstalledModel, shortHash, weightsName } from '@app/model-store';
import type { AdapterSource } from '../engine/engine-protocol';

type Named = Pick<InstalledModel, 'name' | 'precision'> & { hash: string };

/**
 * The name in a record of what draws it: `<model>@<hash>`, and `+<hash>` of each Fine-Tune's weights. Equal names mean
 * equal weights.
 */
export function servedByOf(
  model: Named,
  adapters: readonly Pick<AdapterSource, 'kind' | 'hash' | 'scale'>[] = [],
): string {
  return [weightsName(model), ...adapters.map((adapter) => shortHash(scaledHash(adapter)))].join('+');
}

/** That of the file, unless it is applied with another scale than 1. A textual inversion has no scale. */
function scaledHash({ kind, hash, scale }: Pick<AdapterSource, 'kind' | 'hash' | 'scale'>): string {
  if (kind === 'textual_inversion' || scale === 1) return hash;
  return createHash('sha256').update(`${hash}*${scale}`).digest('hex');
}
