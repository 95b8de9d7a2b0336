import type { Finetune, TrainingTask } from '@app/domain';
import { PictureError, type Reading } from '@app/pictures';
import { TrainingPictures } from './training-pictures';

describe(TrainingPictures.name, () => {
  const finetune = { token: 'zwx', name: 'robot' } as Finetune;
  const imageOf = (url: string) => ({ width: 1, height: 1, data: Buffer.from(url) });
  const spent: number[] = [];
  beforeEach(() => void (spent.length = 0));
  const read = (
    reader: (url: string, reading: Reading) => Promise<unknown>,
    imagesUrl: string[],
    { limitMs, signal = new AbortController().signal }: { limitMs?: number; signal?: AbortSignal } = {},
  ) =>
    new TrainingPictures({ read: reader as never }).read(
      {
        task: { ownerId: 'a', imagesUrl, captions: null } as unknown as TrainingTask,
        progress: { spend: (seconds) => void spent.push(seconds) },
        ...{ finetune, plan: { size: 8 }, signal },
      },
      limitMs,
    );
  /** Ends with the signal, as a reader does. */
  const stuck = (_: string, { signal }: Reading) =>
    new Promise((_resolve, reject) => signal!.addEventListener('abort', () => reject(signal!.reason as Error)));

  it('reads each picture once, some at a time, and gives them in their order', async () => {
    const asked: string[] = [];
    let [now, most] = [0, 0];
    const pictures = await read(
      async (url, { field }) => {
        asked.push(`${field} ${url}`);
        most = Math.max(most, ++now);
        await new Promise(setImmediate);
        now--;
        return { image: imageOf(url) };
      },
      ['a', 'b', 'a', 'c', 'd', 'e', 'b'],
    );
    expect(pictures.map(({ image }) => Buffer.from(image.data).toString()).join('')).toBe('abacdeb');
    expect(asked).toEqual(['[0] a', '[1] b', '[3] c', '[4] d', '[5] e'].map((each) => `images_url${each}`));
    expect(most).toBe(4);
  });

  it('gives up a set that takes too long, and charges what it took', async () => {
    const late = read(stuck, ['a', 'b'], { limitMs: 10 });
    await expect(late).rejects.toThrow(PictureError);
    await expect(late).rejects.toThrow('takes, with the others, longer than');
    expect(spent.reduce((sum, seconds) => sum + seconds, 0)).toBeGreaterThan(0);
  });

  it('gives up all with the first that cannot be read, and charges that', async () => {
    const none = (url: string, reading: Reading) =>
      url === 'a' ? Promise.reject(new PictureError(reading.field, 'is broken')) : stuck(url, reading);
    await expect(read(none, ['b', 'a'])).rejects.toThrow('The picture in `images_url[1]` is broken.');
    expect(spent.length).toBeGreaterThan(0);
  });

  it('ends with the signal', async () => {
    const stop = new AbortController();
    const reading = read(stuck, ['a'], { signal: stop.signal });
    stop.abort(new Error('It is enough.'));
    await expect(reading).rejects.toThrow('It is enough.');
  });
});
