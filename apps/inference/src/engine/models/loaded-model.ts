import type { GraphSession, Renderer, StableDiffusionPipeline } from '@app/diffusion';
import type { DrawingGraphs } from '../threads/lanes';
import type { Releasable } from './model-registry';

/** How a model comes into the lanes. */
export interface LanesOfModel {
  /** Loads its graphs into each. */
  open: () => Promise<readonly DrawingGraphs<GraphSession>[]>;
  /** Told, once, why that failed. */
  onNone: (error: Error) => void;
}

/** A model that can be drawn with: by all threads of the device, and if it is small by each of the engine's lanes. */
export class LoadedModel implements Releasable {
  private opening: Promise<readonly DrawingGraphs<GraphSession>[]> | undefined;
  private renderers: readonly Renderer[] | undefined;
  private drawnMs = 0;

  /** @param loadMs what loading it took, without the lanes */
  constructor(
    readonly pipeline: StableDiffusionPipeline,
    readonly loadMs: number,
    private readonly lanes?: LanesOfModel,
  ) {}

  /** A renderer for each lane; undefined if there is none yet. */
  get inLanes(): readonly Renderer[] | undefined {
    return this.renderers;
  }

  /** It has been drawn with for so long. */
  noteDrawn(ms: number): void {
    this.drawnMs += ms;
  }

  /**
   * Begins to load it into the lanes, unless that was begun before, it is not for lanes, or it has been drawn with for
   * less time than it took to load: an owner who changes a scale again and again has a model for each picture, and
   * nobody is charged for the lanes.
   */
  openLanes(): void {
    if (!this.lanes || this.opening || this.drawnMs < this.loadMs) return;
    this.opening = this.lanes.open();
    this.opening.then(
      (graphs) => (this.renderers = graphs.map((each) => this.pipeline.rendererOver(each))),
      // For want of memory, or because its files are gone: it is drawn without lanes until it is loaded anew.
      this.lanes.onNone,
    );
  }

  async release(): Promise<void> {
    const lanes = (await this.opening?.catch(() => undefined)) ?? [];
    await Promise.all(lanes.flatMap(({ unet, vaeDecoder }) => [unet.release(), vaeDecoder.release()]));
    await this.pipeline.release();
  }
}
