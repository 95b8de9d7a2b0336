import type { DrawnPicture } from '@app/tasks';
import type { RgbImage } from '../engine/engine-protocol';
import type { PictureParameters } from '../pictures/image-encoder';
import { PictureSequence } from './picture-sequence';

describe(PictureSequence.name, () => {
  it.each([
    { blocks: false, flaggedBy: ['safety checker', 'moderation: violence'], stored: [0, 1] },
    { blocks: true, flaggedBy: ['safety checker'], stored: [1] },
  ])('asks the moderation about flagged pictures that are stored: $flaggedBy', async (wanted) => {
    const pictures = [1, 2].map((width) => ({ width }) as RgbImage);
    const sequence = new PictureSequence({
      blocks: wanted.blocks,
      flags: (picture) => Promise.resolve(picture === pictures[0] ? 'moderation: violence' : undefined),
      save: ({ index }) => Promise.resolve({ index } as DrawnPicture),
    });
    for (const [index, picture] of pictures.entries())
      sequence.add({ index, picture, parameters: {} as PictureParameters, isFlagged: index === 0 });
    const { images, flaggedBy } = await sequence.all();
    expect([flaggedBy, images.map(({ index }) => index)]).toEqual([wanted.flaggedBy, wanted.stored]);
  });
});
