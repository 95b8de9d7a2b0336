import { ModelFolderError } from '@app/diffusion';
import { UpscalerError } from './tiled-upscaler';

/** Then a file is tried again, because a disk or a network may have been at fault. */
const triedAgainMs = 600_000;
/** Far more than an engine is asked for in that time; the oldest is forgotten first. */
const most = 100;

/**
 * Models and upscalers whose files could not be used, by their keys, which other files do not have. They are not loaded
 * for each command.
 */
export class Refusals {
  private readonly found = new Map<string, { error: Error; at: number }>();

  /** @param now milliseconds of a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Remembers why it could not be loaded, if its files are at fault. */
  note(key: string, error: unknown): void {
    if (!(error instanceof ModelFolderError || error instanceof UpscalerError)) return;
    this.found.delete(key);
    this.found.set(key, { error, at: this.now() });
    if (this.found.size > most) this.found.delete(this.found.keys().next().value!);
  }

  /** @throws Error what was noted of this key within the last minutes */
  throwIfKnown(key: string): void {
    const found = this.found.get(key);
    if (found && this.now() - found.at < triedAgainMs) throw found.error;
  }
}
