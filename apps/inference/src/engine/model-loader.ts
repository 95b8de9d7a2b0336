import { type Conditioning, type LoadOptions, Pipeline } from '@app/diffusion';
import type { CallTimes } from './call-times';
import type { ThreadOptions } from './engine-protocol';
import type { LoadedConditioner, LoadedModel, Models } from './models';
import type { TaskNeeds } from './task-reader';

/** Name under which the time of loading a model is noted. */
export const loading = 'loading';

/**
 * Loads the two halves of a task's model, unless they are: what encodes texts, and what draws. Each may be released for
 * the other where memory is short.
 */
export class ModelLoader {
  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
    private readonly times: CallTimes,
  ) {}

  /** @throws what `ConditionerFiles.open` does */
  async conditioner({ folder, texts }: TaskNeeds): Promise<LoadedConditioner> {
    const { modelKey: key, weightBytes, mergedWeights } = texts;
    const known = this.models.get<LoadedConditioner>(key);
    if (known) return known;
    const options = await this.loadOptions(mergedWeights);
    return this.models.load<LoadedConditioner>(key, weightBytes, () => folder.conditioner.open(options));
  }

  /**
   * @param texts with which it is tried if there is nothing shorter
   * @throws what `Pipeline.load` does
   */
  async model(needs: TaskNeeds, texts: Conditioning): Promise<LoadedModel> {
    const { modelKey: key, weightBytes, mergedWeights, folder } = needs;
    const known = this.models.get<LoadedModel>(key);
    if (known) return known;
    const startedAt = performance.now();
    const options = await this.loadOptions(mergedWeights);
    const conditioner = this.models.get<LoadedConditioner>(needs.texts.modelKey);
    const conditioning = (await conditioner?.instance.encodeNothing()) ?? texts;
    const open = () => Pipeline.loadWithoutTexts(folder, conditioning, options);
    const loaded = await this.models.load<LoadedModel>(key, weightBytes, open);
    this.times.recordWork(loading, performance.now() - startedAt);
    return loaded;
  }

  private async loadOptions(mergedWeights: TaskNeeds['mergedWeights']): Promise<LoadOptions> {
    const { device, intraOpNumThreads } = this.options;
    const file = await mergedWeights?.();
    return {
      device,
      ...(intraOpNumThreads !== undefined && { intraOpNumThreads }),
      ...(file !== undefined && { changedWeights: file }),
    };
  }
}
