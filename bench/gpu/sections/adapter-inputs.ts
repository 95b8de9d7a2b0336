import { ModelSession } from '@app/diffusion';
import type { Denoiser } from '../../../libs/diffusion/src/denoisers/denoiser';
import { figure, interleave, median, msOf, ratios } from '../../section';
import { denoiserOn, graphOfDenoiser } from '../denoisers';
import { type GpuSection, edgeOf, inMs, namedRows, secondsLeft, tellUnlessFinite } from '../gpu-section';
import { someRows, textTokens } from '../inputs';
import { type ModelName, modelOf } from '../models';

const calls: { model: ModelName; pixels: number; counts: number[] }[] = [
  { model: 'sd15', pixels: 512, counts: [1, 8] },
  { model: 'klein', pixels: 1024, counts: [1] },
  { model: 'sdxl', pixels: 1024, counts: [1] },
];

/** Each adapted layer has an `If`, which costs a device that waits for the host more than one that computes. */
export const adapterInputs: GpuSection = {
  name: 'adapter-inputs',
  title: 'What inputs for adapters cost',
  about:
    'A call of a graph without inputs for adapters and ControlNets, divided by one of the graph that is drawn with, where none is used; in turns.',
  seconds: 40,
  async measure(bench) {
    for (const { model, pixels, counts } of calls) {
      if (secondsLeft(bench) < 10) return bench.tell(`${model}: left out, for time.`);
      const folder = await modelOf(model, bench);
      const open = async (kind: 'drawn' | 'plain') => {
        const session = await ModelSession.open(await graphOfDenoiser(folder, bench.device, kind), bench);
        return denoiserOn(folder, session, bench.device);
      };
      const [plain, drawn] = [await open('plain'), await open('drawn')];
      for (const count of counts) {
        const of = { tokens: textTokens[model], pixels: edgeOf(bench, pixels), count };
        const { rows, shape } = someRows(folder, drawn, of);
        if (count === 1)
          for (const denoiser of [plain, drawn])
            tellUnlessFinite(bench, `${model}’s output`, await denoiser.predict(rows, shape));
        const call = (denoiser: Denoiser) => () => msOf(() => denoiser.predict(rows, shape));
        const times = await interleave({ plain: call(plain), drawn: call(drawn) }, bench.size === 'tiny' ? 3 : 12);
        bench.tell({
          ...figure(`${model} at ${pixels}, ${namedRows(count)}`, ratios(times.plain, times.drawn)),
          detail: `${inMs(median(times.plain))} / ${inMs(median(times.drawn))}`,
        });
      }
      await Promise.all([plain.release(), drawn.release()]);
    }
  },
};
