import { EngineStateReader } from '../engine-client/engine-state';
import { reportOf } from './worker-presence';

describe(reportOf.name, () => {
  const hash = '0123456789abcdef'.repeat(4);
  const reader = new EngineStateReader();
  const report = (tasks: number) => reportOf({ device: 'cpu', ...reader.state(tasks) });
  const load = (key: string, modelBytes: number) =>
    reader.note({ type: 'loaded', key, loadMs: 1, modelBytes, totalBytes: modelBytes });
  const idle = { device: 'cpu', tasks: 0, pictures: 0, stepMs: null, memoryBytes: 8e9 };

  beforeEach(() => {
    reader.clear();
    reader.note({ type: 'ready', device: 'cpu', memoryBytes: 8e9 });
  });

  it('names what is loaded, with the beginnings of its hashes', () => {
    load(`shapes@${hash}`, 100);
    load(`sd1.5@${hash},clip_skip=2+lora:${hash}:0.8+dora:${hash}:1 texts`, 200);
    load('upscaler x4@0123456789ab', 300);
    expect(report(0)).toEqual({
      ...idle,
      loaded: [
        { name: 'shapes@0123456789ab', bytes: 100 },
        { name: 'sd1.5@0123456789ab+lora:0123456789ab:0.8+dora:0123456789ab:1 texts', bytes: 200 },
        { name: 'upscaler x4@0123456789ab', bytes: 300 },
      ],
    });
    reader.note({ type: 'released', key: `shapes@${hash}` });
    expect(report(0).loaded.map(({ bytes }) => bytes)).toEqual([200, 300]);
    expect(reader.loadedKeys.has(`shapes@${hash}`)).toBe(false);
  });

  it('has the batch and the time of the last step, as long as something is drawn', () => {
    expect(report(1)).toEqual({ ...idle, tasks: 1, loaded: [] });
    reader.note({ type: 'stepped', drawings: 2, pictures: 5, rows: 10, stepMs: 120.4 });
    expect(report(2)).toMatchObject({ tasks: 2, pictures: 5, stepMs: 120 });
    expect(report(0)).toEqual({ ...idle, loaded: [] });
  });

  it('has nothing of a thread that has ended', () => {
    load(`shapes@${hash}`, 100);
    reader.note({ type: 'stepped', drawings: 1, pictures: 1, rows: 2, stepMs: 50 });
    reader.clear();
    expect(report(1)).toEqual({ ...idle, tasks: 1, loaded: [] });
  });
});
