import { encodeTexts, Pipeline, type TextToImageRequest } from '@app/diffusion';
import type { Figure } from '../../section';
import { peakOfCard } from '../card-memory';
import { type GpuBench, type GpuSection, edgeOf, inMs } from '../gpu-section';
import { type ModelName, modelOf } from '../models';

interface WholePicture {
  model: ModelName;
  steps: number;
  guidanceScale: number;
  /** What others need for it, in milliseconds. */
  public?: { ms: number; of: string };
}

const pixels = 1024;

/** A whole picture, from its text on. */
export function wholePicture({ model, steps, guidanceScale, public: known }: WholePicture): GpuSection {
  return {
    name: `picture-${model}`,
    title: `A picture of ${model}: ${steps} steps at ${pixels}`,
    about: `From a new prompt to pixels, by the library, alone on the card.${known ? ` The ratio is to ${inMs(known.ms)} (${known.of}).` : ''}`,
    seconds: 30,
    async measure(bench) {
      const { peak } = await peakOfCard(bench.device, () =>
        draw(bench, { model, steps, guidanceScale, ...(known && { public: known }) }),
      );
      if (peak !== undefined) bench.tell(`Peak of the card: ${peak}.`);
    },
  };
}

async function draw(bench: GpuBench, { model, steps, guidanceScale, public: known }: WholePicture): Promise<void> {
  const edge = edgeOf(bench, pixels);
  const folder = await modelOf(model, bench);
  const conditioner = await folder.conditioner.open({ device: bench.device });
  const pipeline = await Pipeline.loadWithoutTexts(folder, await conditioner.encodeNothing(), { device: bench.device });
  const totals: number[] = [];
  for (const [i, name] of ['The first picture', 'The second', 'The third'].entries()) {
    const request: TextToImageRequest = {
      ...{ prompt: `a lighthouse in storm ${i}`, negativePrompt: null, width: edge, height: edge },
      ...{ numInferenceSteps: steps, guidanceScale, seeds: [i] },
    };
    const before = pipeline.spent.denoiser.runMs;
    const at = [performance.now()];
    const texts = await encodeTexts(folder, conditioner, request);
    at.push(performance.now());
    const [trajectory] = await pipeline.prepare(request, texts);
    while (!trajectory.done) await pipeline.step([trajectory]);
    at.push(performance.now());
    await pipeline.decode(trajectory);
    at.push(performance.now());
    const [text, denoising, decoding] = at.slice(1).map((ms, part) => ms - at[part]);
    const inside = pipeline.spent.denoiser.runMs - before;
    totals.push(at[3] - at[0]);
    bench.tell(
      `${name}: ${inMs(totals[i])}: text ${inMs(text)}, denoising ${inMs(denoising)} (${inMs(inside)} in ONNX Runtime), decoding ${inMs(decoding)}.`,
    );
  }
  if (known)
    bench.tell({
      name: `the third / ${known.of}`,
      ratios: [totals[2] / known.ms],
      detail: inMs(totals[2]),
    } satisfies Figure);
  await Promise.all([pipeline.release(), conditioner.release()]);
}
