import type { Device } from '@app/diffusion';
import type { EngineReport } from '@app/domain';
import { shortHash, weightsName } from '@app/model-store';
import type { EngineState } from '../engine-client/engine-state';

/**
 * The report of a worker about an engine. The key of a model tells its weights in full; people compare
 * the beginnings of hashes.
 */
export function reportOf({ loaded, ...state }: EngineState & { device: Device }): EngineReport {
  return { ...state, loaded: loaded.map(({ key, bytes }) => ({ name: nameOf(key), bytes })) };
}

/** `<model>@<hash>`, and `+<kind>:<hash>:<scale>` of a Fine-Tune that has changed its weights. */
function nameOf(key: string): string {
  const [base, changed] = key.split('+');
  const [name, hash] = base.split('@');
  const [kind, weights, scale] = changed?.split(':') ?? [];
  return `${weightsName({ name, hash })}${changed === undefined ? '' : `+${kind}:${shortHash(weights)}:${scale}`}`;
}
