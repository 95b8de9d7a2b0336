import sharp from 'sharp';
import { encodePicture } from '../../apps/inference/src/pictures/image-encoder';
import { BenchEngine, someRequest } from '../bench-engine';
import { interleave, msOf } from '../rounds';
import type { Section } from '../section';
import { figure, ratios } from '../section';

/** Pictures of one measurement. */
const pictures = 20;

export const png: Section = {
  name: 'png',
  title: 'PNG',
  about: 'Time to encode a drawn picture as a PNG that carries its parameters, divided by the time of sharp alone.',
  rounds: 9,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const [picture] = await bench.draw({});
    await bench.close();
    const { width, height, data } = picture;
    const { prompt, seed, guidanceScale: cfg, numInferenceSteps: steps, negativePrompt } = someRequest;
    const parameters = {
      ...{ prompt, negative_prompt: negativePrompt, seed, cfg, steps, scheduler: 'euler', width, height },
      ...{ model: 'shapes', model_hash: '0'.repeat(64), version: '0' },
    };
    const repeat = (work: () => Promise<unknown>) => () =>
      msOf(async () => {
        for (let i = 0; i < pictures; i++) await work();
      });
    const sides = {
      ours: repeat(() => encodePicture(picture, 'png', parameters)),
      sharp: repeat(() =>
        sharp(data, { raw: { width, height, channels: 3 } })
          .png({ compressionLevel: 6 })
          .toBuffer(),
      ),
    };
    const times = await interleave(sides, options.rounds);
    return { figures: [figure('with parameters / sharp alone', ratios(times.ours, times.sharp))] };
  },
};
