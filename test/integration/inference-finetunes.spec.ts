import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DrawOptions, Engine } from '../../apps/inference/src/engine-client/engine';
import {
  TaskAbortedError,
  TaskRefusedError,
  EngineBrokenError,
} from '../../apps/inference/src/engine-client/task-errors';
import type { AdapterSource, RgbImage } from '../../apps/inference/src/engine/engine-protocol';
import { unpackFamily } from '../support/families';
import { threadFile } from '../support/inference';
import { smallRequest } from '../support/small-request';

describe('Fine-Tunes of one model', () => {
  let folder: string;
  let engine: Engine;
  /** Models beside the plain one that a test has had loaded. */
  const loaded: string[] = [];
  /** What encodes texts, the plain one too. */
  const loadedTexts: string[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-finetunes-'));
    await unpackFamily('sd15', folder);
    writeFileSync(join(folder, 'odd.safetensors'), 'odd');
    engine = new Engine({
      settings: { device: 'cpu', intraOpNumThreads: 1, cacheDir: join(folder, 'cache') },
      ...{ stallMs: 60_000, threadFile },
      onLoaded: ({ key }) => (key.endsWith(' texts') ? loadedTexts : key === 'model' ? [] : loaded).push(key),
    });
  });
  beforeEach(() => void (loaded.length = 0));
  afterAll(async () => {
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function weights(name: string, change: Partial<AdapterSource> = {}): AdapterSource {
    return {
      kind: 'lora',
      file: join(folder, 'adapters', `${name}.safetensors`),
      hash: name,
      scale: 1,
      token: '',
      ...change,
    };
  }

  async function draw(
    adapters: AdapterSource[],
    rest: Partial<DrawOptions> = {},
    prompt = 'a red circle',
  ): Promise<RgbImage> {
    let drawn: RgbImage | undefined;
    await engine.draw({
      owner: 'somebody',
      model: { key: 'model', name: 'model', folder: join(folder, 'model'), hash: 'a'.repeat(64) },
      adapters,
      request: { ...smallRequest, prompt, numInferenceSteps: 4 },
      onPicture: (_, picture) => (drawn = picture),
      ...rest,
    });
    return drawn!;
  }

  const changedWeights = (): string[] => {
    const files = join(folder, 'cache', 'changed-weights');
    return existsSync(files) ? readdirSync(files) : [];
  };

  it('of low rank are drawn with one loaded model, each with its scale', async () => {
    const lora = (scale: number) => weights('lora-attention-peft', { scale });
    const pictures = [
      await draw([]),
      await draw([lora(1)]),
      await draw([lora(0.5)]),
      await draw([weights('locon-kohya')]),
    ];
    for (const [i, picture] of pictures.entries())
      for (const other of pictures.slice(0, i)) expect(other).not.toEqual(picture);
    expect(await draw([lora(0)])).toEqual(pictures[0]);
    expect(await draw([lora(0.5)])).toEqual(pictures[2]);
    expect(loaded).toEqual([]);
    expect(changedWeights()).toEqual([]);
  });

  it('are drawn together', async () => {
    const both = [weights('lora-attention-peft'), weights('locon-kohya', { scale: 0.5 })];
    const picture = await draw(both);
    for (const one of both) expect(await draw([one])).not.toEqual(picture);
    expect(await draw(both)).toEqual(picture);
  });

  it('that are embeddings stand for a word of the prompt', async () => {
    const embedding = weights('zig', { kind: 'textual_inversion', token: 'zig' });
    const picture = await draw([embedding], {}, 'a zig circle');
    expect(picture).not.toEqual(await draw([], {}, 'a zig circle'));
    expect(await draw([{ ...embedding, token: 'zag' }], {}, 'a zag circle')).toEqual(picture);
    expect(loaded).toEqual([]);
  });

  it('that are not of low rank are loaded as models of their own, once, and leave no file', async () => {
    const lokr = (scale: number) => weights('lokr', { scale });
    const [plain, ...tuned] = await Promise.all([draw([]), draw([lokr(1)]), draw([lokr(1)]), draw([lokr(0.5)])]);
    expect(tuned[0]).toEqual(tuned[1]);
    expect(tuned[0]).not.toEqual(plain);
    expect(tuned[0]).not.toEqual(tuned[2]);
    expect(loaded.toSorted()).toEqual(['model+lora:lokr:0.5', 'model+lora:lokr:1']);
    expect(await draw([lokr(1)])).toEqual(tuned[0]);
    expect(loaded).toHaveLength(2);
    expect(changedWeights()).toEqual([]);
  });

  it('that are not of low rank share the text encoder of the model unless they change it', async () => {
    await draw([]);
    loadedTexts.length = 0;
    const ofUnet = (scale: number) => weights('dora-peft', { scale });
    const [whole, half] = [await draw([ofUnet(1)]), await draw([ofUnet(0.5)])];
    expect(whole).not.toEqual(half);
    expect(loaded).toEqual(['model+lora:dora-peft:1', 'model+lora:dora-peft:0.5']);
    expect(loadedTexts).toEqual([]);
    await draw([ofUnet(1), weights('lokr', { scale: 0.6 })]);
    expect(loadedTexts).toEqual(['model+lora:lokr:0.6 texts']);
  });

  it('that are not of low rank are drawn together', async () => {
    const [lokr, diff] = [weights('lokr'), weights('diff', { scale: 0.5 })];
    const both = await draw([lokr, diff]);
    for (const one of [[], [lokr], [diff]]) expect(await draw(one)).not.toEqual(both);
    expect(await draw([lokr, weights('diff', { scale: 0 })])).toEqual(await draw([lokr]));
    expect(loaded).toContain('model+lora:lokr:1+lora:diff:0.5');
    expect(changedWeights()).toEqual([]);
  });

  it('that are not of low rank are drawn once their file can be written, although it could not be before', async () => {
    const inTheWay = join(folder, 'cache', 'changed-weights');
    rmSync(inTheWay, { recursive: true, force: true });
    writeFileSync(inTheWay, 'a file where the folder should be');
    const another = weights('lokr', { scale: 0.9 });
    await expect(draw([another])).rejects.toThrow(EngineBrokenError);
    rmSync(inTheWay);
    expect(await draw([another])).toBeDefined();
  });

  it('leave no file if they are canceled before they are loaded', async () => {
    await draw([]);
    const stop = new AbortController();
    const drawing = draw([weights('lokr', { scale: 0.8 })], { signal: stop.signal });
    stop.abort();
    await expect(drawing).rejects.toThrow(TaskAbortedError);
    await draw([]);
    expect(changedWeights()).toEqual([]);
  });

  it('leave no file if a ControlNet beside them cannot be read', async () => {
    const image = { width: 64, height: 64, data: new Uint8Array(64 * 64 * 3) };
    const missing = { key: 'edges', name: 'edges', folder: join(folder, 'nowhere'), hash: 'b'.repeat(64) };
    const control = [{ controlNet: missing, image, scale: 1, start: 0, end: 1 }];
    const drawing = draw([weights('lokr', { scale: 0.7 })], { request: { ...smallRequest, control } });
    const refused = await drawing.catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(TaskRefusedError);
    expect((refused as Error).message).toMatch(/^The ControlNet edges cannot be used: /);
    expect((refused as Error).message).not.toContain(folder);
    expect(changedWeights()).toEqual([]);
  });

  it('are refused without a path of this machine if they are no weights, or of another model', async () => {
    const odd = { ...weights('odd'), file: join(folder, 'odd.safetensors') };
    const refused = await draw([odd]).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(TaskRefusedError);
    expect((refused as Error).message).toMatch(/^The weights of the Fine-Tune cannot be used: /);
    expect((refused as Error).message).not.toContain(folder);
    expect(await draw([])).toBeDefined();
  });
});
