import { ModelFolderError } from '@app/diffusion';
import { KnownFaults } from '@app/process';
import { UpscalerError } from '../engine-errors';

/**
 * Models and upscalers whose files could not be used, by their keys, which other files do not have. They are not loaded
 * for each command.
 */
export class Refusals {
  private readonly faults: KnownFaults<Error>;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now?: () => number) {
    this.faults = new KnownFaults(now);
  }

  /** Remembers why it could not be loaded, if its files are at fault. */
  note(key: string, error: unknown): void {
    if (error instanceof ModelFolderError || error instanceof UpscalerError) this.faults.note(key, error);
  }

  /** @throws Error what was noted of this key within the last minutes */
  throwIfKnown(key: string): void {
    const error = this.faults.of(key);
    if (error) throw error;
  }
}
