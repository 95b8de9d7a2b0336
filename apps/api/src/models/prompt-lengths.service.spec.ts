import type { TextLengths } from './counting-thread';
import { PromptLengths } from './prompt-lengths.service';
import type { TokenCounter } from './token-counter';

/** Counts three chunks for any text, and notes each text. */
class ThreeChunks {
  readonly texts: string[] = [];

  count(_key: string, { texts }: { texts: readonly string[] }): Promise<TextLengths> {
    this.texts.push(...texts);
    return Promise.resolve({ lengths: [{ chunks: 3, tokens: 200 }], certainBytes: 75 });
  }
}

describe(PromptLengths.name, () => {
  const model = { folder: '', hash: 'h', fixed: {} };
  const counter = new ThreeChunks();
  const lengths = new PromptLengths(counter as unknown as TokenCounter);
  const check = (prompt: string, promptWeighting: boolean) =>
    lengths.check('key', model, [{ prompt, negativePrompt: null, cfg: 1, promptWeighting }], () => '/prompt');

  it('counts a short text only where a BREAK may end its chunk', async () => {
    await check('a'.repeat(100), false);
    counter.texts.length = 0;
    expect(await check('a BREAK b', false)).toEqual([1]);
    expect(await check('a break b', true)).toEqual([1]);
    expect(counter.texts).toEqual([]);
    expect(await check('a BREAK b', true)).toEqual([3]);
    expect(counter.texts).toEqual(['a BREAK b']);
  });

  it('counts a text that is short only in small letters', async () => {
    await check('a'.repeat(100), false);
    // Three bytes each, and two as a small letter.
    expect(await check('\u2c62'.repeat(26), false)).toEqual([3]);
  });
});
