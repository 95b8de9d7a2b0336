import { defaults, type SigningState } from '@app/domain';
import type { ModelDto } from '@app/domain/http';
import { type InstalledModel, schedulersOf, shortHash } from '@app/model-store';

/** A model as `GET /v1/models` shows it. @param found what its own folder does not tell */
export function shownModel(
  model: InstalledModel,
  found: {
    devices: readonly string[];
    untrained: string | undefined;
    standsInFor: string[];
    credentials: SigningState;
    problem: string | null;
  },
): ModelDto {
  const { devices, untrained, standsInFor, credentials, problem } = found;
  const { cfg = defaults.cfg, steps = defaults.steps, scheduler = null } = model.defaults;
  return {
    name: model.name,
    family: model.family ?? null,
    family_title: model.familyTitle ?? null,
    kind: model.kind ?? null,
    scheduler: model.scheduler ?? null,
    native_size: model.nativeSize ?? null,
    size_multiple: model.sizeMultiple ?? null,
    max_pixels: model.maxPixels ?? null,
    device: devices.length > 0 ? devices.join(',') : null,
    hash: model.hash === undefined ? null : shortHash(model.hash),
    precision: model.precision ?? null,
    bytes: model.bytes,
    defaults: { cfg, steps, scheduler },
    schedulers: model.hash === undefined ? [] : schedulersOf(model),
    cannot: { ...model.cannot, ...(untrained !== undefined && { training: untrained }) },
    stands_in_for: standsInFor,
    credentials,
    problem,
  };
}
