import { Engine, type EngineOptions } from '../../apps/inference/src/engine-client/engine';
import {
  TaskAbortedError,
  EngineBrokenError,
  EngineLostError,
} from '../../apps/inference/src/engine-client/task-errors';
import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';
import { faultyThread } from '../support/inference';

describe('an engine that loses its GPU', () => {
  function engineWith(fault: string) {
    const stalls: string[] = [];
    const options: EngineOptions = {
      settings: { device: 'auto', intraOpNumThreads: 1, cacheDir: '' },
      threadFile: faultyThread(fault),
      stallMs: 60_000,
      onStall: ({ message }) => stalls.push(message),
    };
    const engine = new Engine(options);
    const draw = (prompt: string): Promise<unknown> =>
      engine
        .draw({
          owner: 'somebody',
          model: { key: 'model', name: 'model', folder: '', hash: '' },
          request: { prompt } as DrawRequest,
          onPicture: () => undefined,
        })
        .catch((error: unknown) => error);
    return { engine, draw, stalls };
  }

  it('is of no more use after several drawings that broke in a row, and gives back what had not begun', async () => {
    const { engine, draw, stalls } = engineWith('deadGpu');
    const [begun, waiting] = [draw('begins'), draw('waits')];
    for (let i = 0; i < 3; i++) expect(await draw('breaks')).toBeInstanceOf(EngineBrokenError);
    await draw('sound');
    for (let i = 0; i < 5; i++) await draw('large');
    for (let i = 0; i < 3; i++) await draw('breaks');
    expect(stalls).toEqual([]);
    expect(await draw('breaks')).toBeInstanceOf(EngineBrokenError);
    expect(stalls).toEqual([expect.stringMatching(/^The device cuda:0 cannot be used any more: CUDA failure 700/)]);
    expect(engine.isStalled).toBe(true);
    expect(await begun).toBeInstanceOf(EngineLostError);
    expect(await waiting).toBeInstanceOf(TaskAbortedError);
    expect(await draw('sound')).toBeInstanceOf(TaskAbortedError);
    await engine.close();
  });

  it('starts again with the device it had chosen, and is of no more use without it', async () => {
    const { engine, draw, stalls } = engineWith('vanishingGpu');
    expect(await draw('any')).toBeInstanceOf(EngineLostError);
    expect(await Promise.all([draw('next'), draw('another')])).toEqual(
      [1, 2].map(() => expect.any(TaskAbortedError) as unknown),
    );
    expect(stalls).toEqual(['The device cuda:0 cannot be used any more: there is no cuda:0']);
    await engine.close();
  });
});
