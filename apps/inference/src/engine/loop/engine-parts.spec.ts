import type { RgbImage } from '@app/diffusion';
import { type DrawCommand, DrawingInProgress } from '../calls/drawing-in-progress';
import type { EngineMessage } from '../engine-protocol';
import type { LoadedModel } from '../models/loaded-model';
import { EngineParts } from './engine-parts';

// Nothing can be read or written there: a merge fails as soon as the system says so, which the thread hears only when
// it waits.
const nowhere = '/dev/null/none';
const weights = { kind: 'lora', file: nowhere, hash: '', scale: 1, token: '' } as const;
const upscaler = { key: 'upscaler', name: 'upscaler', file: nowhere, maxLongEdge: 16 };
const picture: RgbImage = { width: 8, height: 8, data: new Uint8Array(3 * 8 * 8) };

const commandOf = (owner: string): DrawCommand => ({
  ...{ type: 'draw', id: 1, owner, cancel: new SharedArrayBuffer(4) },
  model: { key: owner, name: owner, folder: nowhere, hash: '', weights },
  request: {
    ...{ prompt: 'a circle', negativePrompt: null, guidanceScale: 7.5, numInferenceSteps: 1, seed: 1 },
    ...{ numImages: 1, scheduler: null, width: 8, height: 8, promptWeighting: false },
  },
});

/** A drawing whose picture is decoded. */
function decodedDrawing(owner: string): DrawingInProgress {
  const trajectory = { shape: [4, 1, 1], prompt: { tokens: 77 }, rows: 2, remainingSteps: 0, totalSteps: 1 };
  const trajectories = [trajectory] as object as DrawingInProgress['trajectories'];
  const drawing = new DrawingInProgress(commandOf(owner), {} as LoadedModel, trajectories);
  drawing.took(trajectories[0], picture);
  return drawing;
}

describe(EngineParts.name, () => {
  describe('between two calls of the U-Net, beside a second thread', () => {
    let parts: EngineParts;
    let drawings: DrawingInProgress[];
    let isMerging: Promise<unknown>;

    beforeEach(async () => {
      drawings = [];
      let begins: (message: EngineMessage) => void;
      isMerging = new Promise((resolve) => (begins = resolve));
      const nothing = (): void => undefined;
      const host = {
        ...{ begun: nothing, decoded: nothing, drawAlone: nothing, end: nothing, failed: nothing, left: nothing },
        ...{ isDrawingAlone: () => false, isClosed: () => false, drawings: () => drawings },
        report: (message: EngineMessage) => begins(message),
      };
      parts = new EngineParts({ device: 'cuda:0', intraOpNumThreads: 1, cacheDir: nowhere }, 2 ** 30, host, nothing);
    });
    afterEach(() => parts.close());

    /** @returns whether a merge that began before the first call is over before the second one */
    async function isMergedBetween({ mergedMs = 0, beside = (): void => undefined }): Promise<boolean> {
      const { admission, ownThread, shares } = parts;
      shares.enter('drawing');
      admission.add(commandOf('merging'));
      await Promise.all([admission.admit(), isMerging]);
      beside();
      shares.charge('merging', mergedMs);
      void ownThread.run(async () => shares.noteBlocked(60_000));
      // A merge is charged when it ends.
      return ownThread.run(async () => shares.of('merging') > mergedMs);
    }

    it('lets a merge go on, where its owner has had no more than who draws', async () => {
      expect(await isMergedBetween({ beside: () => (drawings = [decodedDrawing('drawing')]) })).toBe(true);
    });

    it('does not let one go on whose owner is ahead of who draws', async () => {
      const beside = () => (drawings = [decodedDrawing('drawing')]);
      expect(await isMergedBetween({ mergedMs: 1e6, beside })).toBe(false);
    });

    it('does not let one go on whose owner is ahead of whom pictures are enlarged for', async () => {
      const beside = () => parts.enlarging.add(decodedDrawing('drawing'), upscaler);
      expect(await isMergedBetween({ mergedMs: 1e6, beside })).toBe(false);
    });
  });
});
