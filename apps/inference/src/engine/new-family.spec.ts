import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readModelFolder } from '@app/diffusion';
import { convertModel } from '../../../../libs/model-store/src/convert-model';
import { listFolder } from '../../../../libs/model-store/src/model-layout';
import { families } from '../../../../libs/diffusion/src/families';
import { smallRequest } from '../../../../test/support/small-request';
import { toyFamily, writeToyModel } from '../../../../test/support/toy-family';
import { EngineLoop } from './engine-loop';
import type { DrawRequest, EngineMessage, RgbImage } from './engine-protocol';

const folder = mkdtempSync(join(tmpdir(), 'toy-model-'));
beforeAll(() => {
  // The one line that a family takes outside of its own file.
  families.unshift(toyFamily);
  writeToyModel(folder, { red: [1, -1, -1, 0], blue: [-1, -1, 1, 0] });
});
afterAll(() => {
  families.shift();
  rmSync(folder, { recursive: true });
});

/** Draws prompts side by side, each of an owner of its own. */
async function draw(prompts: readonly string[], more: Partial<DrawRequest> = {}, model = folder): Promise<RgbImage[]> {
  const pictures: RgbImage[] = [];
  let left = prompts.length;
  let loop: EngineLoop;
  await new Promise<void>((resolve, reject) => {
    loop = new EngineLoop(
      { device: 'cpu', intraOpNumThreads: 1, cacheDir: folder },
      2 ** 30,
      (message: EngineMessage) => {
        if (message.type === 'failed') reject(new Error(message.message));
        else if (message.type === 'picture') pictures[2 * message.id + message.index] = message.picture;
        else if (message.type === 'done' && --left === 0) resolve();
      },
    );
    for (const [id, prompt] of prompts.entries())
      loop.add({
        ...{ id, owner: `owner ${id}`, adapters: [], cancel: new SharedArrayBuffer(4) },
        model: { key: 'toy', name: 'toy', folder: model, hash: '' },
        request: { ...smallRequest, prompt, width: 64, height: 64, numInferenceSteps: 6, numImages: 2, ...more },
      });
  });
  await loop!.close();
  return pictures;
}

const meanOf = ({ data }: RgbImage, colour: number): number =>
  data.reduce((sum, byte, i) => sum + (i % 3 === colour ? byte : 0), 0) / (data.length / 3);

describe('A family that nothing else knows of', () => {
  it('draws what its words say, and the same beside others', async () => {
    const [red, blue] = [await draw(['a red ball']), await draw(['a blue ball'])];
    expect(red[0]).toMatchObject({ width: 64, height: 64 });
    expect(red[1]).not.toEqual(red[0]);
    // What is predicted as noise is taken away.
    expect(meanOf(blue[0], 0)).toBeGreaterThan(meanOf(red[0], 0));
    expect(meanOf(red[0], 2)).toBeGreaterThan(meanOf(blue[0], 2));
    expect(await draw(['a red ball', 'a blue ball'])).toEqual([...red, ...blue]);
  });

  it('draws from a picture by its own autoencoder', async () => {
    const image = { width: 64, height: 64, data: new Uint8Array(3 * 64 * 64).fill(255) };
    const [[light], [dark]] = [
      await draw(['a red ball'], { image, strength: 0.2 }),
      await draw(['a red ball'], { image: { ...image, data: new Uint8Array(image.data.length) }, strength: 0.2 }),
    ];
    expect(meanOf(light, 1)).toBeGreaterThan(meanOf(dark, 1) + 100);
  });

  it('draws sizes of whole patches of its latents', async () => {
    expect((await draw(['a red ball'], { width: 56 }))[0]).toMatchObject({ width: 56, height: 64 });
    await expect(draw(['a red ball'], { width: 60 })).rejects.toThrow('this model draws multiples of 8 pixels');
  });

  it('draws the same in int8, and keeps in float what it says', async () => {
    const small = join(folder, 'int8');
    const noted = { onProgress: undefined, signal: undefined };
    await convertModel(folder, small, await listFolder(folder), 'int8', noted);
    const { denoiser } = await readModelFolder(small);
    const typeOf = (name: string): string | undefined => denoiser.tensors.get(name)?.type;
    expect([typeOf('mix.weight'), typeOf('meaning.weight')]).toEqual(['I8', 'F32']);
    const [[one], [other]] = [await draw(['a red ball']), await draw(['a red ball'], {}, small)];
    for (const colour of [0, 1, 2]) expect(Math.abs(meanOf(one, colour) - meanOf(other, colour))).toBeLessThan(2);
  });

  it('refuses what it cannot do in its own words', async () => {
    await expect(draw(['(red:2)'], { promptWeighting: true })).rejects.toThrow('A toy knows no weights of words.');
  });
});
