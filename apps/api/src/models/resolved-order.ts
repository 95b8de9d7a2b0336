import { randomInt } from 'node:crypto';
import { type AspectRatio, defaults, type Drawing, limits } from '@app/domain';
import { type InstalledModel, pictureSize } from '@app/model-store';

/**
 * Fields with defaults, undefined or null where not given. No key may be left out: the compiler then finds every body
 * that does not pass on a new field.
 */
export interface DrawingOrder {
  cfg: number | null | undefined;
  steps: number | null | undefined;
  seed: number | null | undefined;
  scheduler: Drawing['scheduler'] | undefined;
  aspectRatio: AspectRatio | null | undefined;
  highResolution: boolean | null | undefined;
  outputFormat: Drawing['outputFormat'] | null | undefined;
  promptWeighting: boolean | null | undefined;
}

/**
 * How a task is drawn, with every default resolved and the seed chosen.
 * @param model its name in the request
 * @param served the model that will draw it
 */
export function resolvedOrder(order: DrawingOrder, model: string, served: InstalledModel) {
  const { defaults: modelDefaults } = served;
  const aspectRatio = order.aspectRatio ?? defaults.aspectRatio;
  return {
    cfg: order.cfg ?? modelDefaults.cfg ?? defaults.cfg,
    steps: order.steps ?? modelDefaults.steps ?? defaults.steps,
    seed: order.seed ?? randomInt(0, limits.seed + 1),
    scheduler: order.scheduler ?? modelDefaults.scheduler ?? null,
    aspectRatio,
    ...pictureSize(model, served, aspectRatio),
    highResolution: order.highResolution ?? defaults.highResolution,
    outputFormat: order.outputFormat ?? defaults.outputFormat,
    promptWeighting: order.promptWeighting ?? defaults.promptWeighting,
  };
}
