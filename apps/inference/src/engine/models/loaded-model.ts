import type { GraphSession, Renderer, StableDiffusionPipeline } from '@app/diffusion';
import type { DrawingGraphs } from '../threads/lanes';
import type { Releasable } from './model-registry';

/** A model that can be drawn with: by all threads of the device, and if it is small by each of the engine's lanes. */
export class LoadedModel implements Releasable {
  private opening: Promise<readonly DrawingGraphs<GraphSession>[]> | undefined;
  private renderers: readonly Renderer[] | undefined;

  /** @param open loads its graphs into each lane @param onNoLanes told, once, why that failed */
  constructor(
    readonly pipeline: StableDiffusionPipeline,
    private readonly open?: () => Promise<readonly DrawingGraphs<GraphSession>[]>,
    private readonly onNoLanes: (error: Error) => void = () => undefined,
  ) {}

  /** A renderer for each lane; undefined if there is none yet. */
  get inLanes(): readonly Renderer[] | undefined {
    return this.renderers;
  }

  /** Begins to load it into the lanes, unless that was begun before or it is not for lanes. */
  openLanes(): void {
    if (!this.open || this.opening) return;
    this.opening = this.open();
    this.opening.then(
      (graphs) => (this.renderers = graphs.map((each) => this.pipeline.rendererOver(each))),
      // For want of memory, or because its files are gone: it is drawn without lanes until it is loaded anew.
      this.onNoLanes,
    );
  }

  async release(): Promise<void> {
    const lanes = (await this.opening?.catch(() => undefined)) ?? [];
    await Promise.all(lanes.flatMap(({ unet, vaeDecoder }) => [unet.release(), vaeDecoder.release()]));
    await this.pipeline.release();
  }
}
