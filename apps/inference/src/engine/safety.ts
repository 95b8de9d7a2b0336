import { readSafetyFolder, type RgbImage, SafetyChecker } from '@app/diffusion';
import type { CallTimes } from './call-times';
import type { ModelSource, ThreadOptions } from './engine-protocol';
import { asRequestError } from './failure';
import { safetyCallBytes, safetyWeightBytesOf } from './memory';
import type { LoadedSafetyChecker, Models } from './models';

/** Looks at drawn pictures by the safety checkers of a device. */
export class Safety {
  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
    private readonly times: CallTimes,
  ) {}

  /** Whether a picture is flagged, if it is to be looked at. @throws RequestError if the checker cannot be used */
  async flags(source: ModelSource | undefined, picture: RgbImage): Promise<boolean> {
    if (!source) return false;
    const loaded = this.models.get<LoadedSafetyChecker>(source.key) ?? (await this.load(source));
    const startedAt = performance.now();
    const look = () => loaded.instance.flags(picture);
    const flagged = await this.models.runCalls([[loaded, { safety: safetyCallBytes }]], look);
    this.times.recordWork(source.key, performance.now() - startedAt);
    return flagged;
  }

  private async load(source: ModelSource): Promise<LoadedSafetyChecker> {
    const refused = asRequestError('safety checker', source);
    const files = await readSafetyFolder(source.folder).catch(refused);
    const open = () => SafetyChecker.open(files, this.options);
    return this.models.load<LoadedSafetyChecker>(source.key, safetyWeightBytesOf(files), open).catch(refused);
  }
}
