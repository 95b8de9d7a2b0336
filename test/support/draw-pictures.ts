import type { DrawOptions, Engine } from '../../apps/inference/src/engine-client/engine';
import type { RgbImage } from '../../apps/inference/src/engine/engine-protocol';

/** @returns the pictures of a drawing, each of which came once and in order */
export async function drawPictures(
  engine: Engine,
  drawing: Pick<DrawOptions, 'model' | 'request'> & Partial<DrawOptions>,
): Promise<RgbImage[]> {
  const pictures: RgbImage[] = [];
  await engine.draw({
    owner: 'somebody',
    onPicture: (index, picture) => expect(pictures.push(picture)).toBe(index + 1),
    ...drawing,
  });
  return pictures;
}
