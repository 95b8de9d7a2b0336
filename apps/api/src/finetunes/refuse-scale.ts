import type { FinetuneWeightsKind } from '@app/domain';
import { UnprocessableError } from '@app/domain';

/**
 * Refuses to scale what has no scale: the vectors of a textual inversion are what a word means, and are
 * not added to anything.
 * @param place where the request has the scale.
 * @throws UnprocessableError
 */
export function refuseScale(
  kind: FinetuneWeightsKind | null,
  scale: number,
  place: { pointer: string } | { parameter: string },
): void {
  if (kind !== 'textual_inversion' || scale === 1) return;
  throw new UnprocessableError('ScaleUnsupported', 'A textual inversion has no scale; leave it out, or send 1.', [
    { ...place, message: `must be 1 for a textual inversion, got ${scale}` },
  ]);
}
