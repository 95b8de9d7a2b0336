import { Trainer } from '@app/diffusion';
import { median, msOf, randomFrom } from '../../section';
import { peakOfCard } from '../card-memory';
import { type GpuBench, type GpuSection, edgeOf, inMs, secondsLeft } from '../gpu-section';
import { type ModelName, modelOf } from '../models';

const pictures = 4;
const mostSteps = 20;

/** Steps of training a LoRA. */
export function training(model: ModelName, batches: readonly number[]): GpuSection {
  return {
    name: `training-${model}`,
    title: `Training of ${model}`,
    about: 'Steps of a LoRA of rank 8 on the layers of attention, pictures of 512 x 512, alone on the card.',
    seconds: 35,
    async measure(bench) {
      for (const batch of batches) {
        if (secondsLeft(bench) < 10) bench.tell(`Batches of ${batch}: left out, for time.`);
        else {
          const { result, peak } = await peakOfCard(bench.device, () => stepsOf(bench, model, batch));
          bench.tell(
            `Batches of ${batch}: ${inMs(result)} a step, ${(1000 / result).toFixed(2)} steps a second${peak === undefined ? '' : `; peak of the card ${peak}`}.`,
          );
        }
      }
    },
  };
}

/** Median milliseconds of a step. */
async function stepsOf(bench: GpuBench, model: ModelName, batch: number): Promise<number> {
  const size = edgeOf(bench, 512);
  const random = randomFrom(1);
  const picture = () => ({
    width: size,
    height: size,
    data: Uint8Array.from({ length: 3 * size * size }, () => 256 * random()),
  });
  const given = Array.from({ length: pictures }, () => ({ image: picture(), caption: 'a red circle' }));
  const trainer = await Trainer.open(
    await modelOf(model, bench),
    given,
    { steps: 1000, batch, size, seed: 1 },
    { device: bench.device },
  );
  await trainer.step();
  const times: number[] = [];
  while (times.length < mostSteps && (times.length < 3 || secondsLeft(bench) > 15))
    times.push(await msOf(() => trainer.step()));
  await trainer.release();
  return median(times);
}
