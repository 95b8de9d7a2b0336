import type { Device } from '@app/diffusion';
import type { EngineReport } from '@app/domain';
import { shortHash, weightsName } from '@app/model-store';
import type { EngineState } from '../engine/engine-state';

/**
 * What a worker says of an engine. The key of a model tells its weights in full; people compare
 * the beginnings of hashes.
 */
export function reportOf({ loaded, ...state }: EngineState & { device: Device }): EngineReport {
  return { ...state, loaded: loaded.map(({ key, bytes }) => ({ name: nameOf(key), bytes })) };
}

/** `<model>@<hash>`, and `+<kind>:<hash>` of a Fine-Tune's weights, whose key (`keyOf`) goes on. */
function nameOf(key: string): string {
  const [base, weights] = key.split('+');
  const [name, hash] = base.split('@');
  const [kind, rest] = weights?.split(':') ?? [];
  return `${weightsName({ name, hash })}${rest === undefined ? '' : `+${kind}:${shortHash(rest)}`}`;
}
