import { interleave, figure, median, msOf, ratios } from '../../section';
import { type GpuBench, type GpuSection, edgeOf, inMs, secondsLeft } from '../gpu-section';
import { someRows, textTokens } from '../inputs';
import { modelOf } from '../models';
import { profileOf } from '../profile';
import { tellSums } from './profile';

const pixels = 512;

export const webgpu: GpuSection = {
  name: 'webgpu',
  title: 'WebGPU',
  about:
    'A call of Stable Diffusion 1.5 at 512 with one row, divided by the same on the device above, in turns. Then its nodes: their times are those of queuing them, not of the card.',
  seconds: 30,
  async measure(bench) {
    const size = edgeOf(bench, pixels);
    const folder = await modelOf('sd15', bench);
    const call = async (device: GpuBench['device']) => {
      const denoiser = await folder.denoiser.open({ device });
      const { rows, shape } = someRows(folder, denoiser, { tokens: textTokens.sd15, pixels: size, count: 1 });
      await denoiser.predict(rows, shape);
      return { denoiser, ms: () => msOf(() => denoiser.predict(rows, shape)) };
    };
    const [own, other] = [await call(bench.device), await call('webgpu')];
    const rounds = bench.size === 'tiny' ? 1 : 3;
    const times = await interleave({ webgpu: other.ms, own: own.ms }, rounds, { warmUp: false });
    await Promise.all([own.denoiser.release(), other.denoiser.release()]);
    bench.tell({
      ...figure(`WebGPU / ${bench.device}`, ratios(times.webgpu, times.own), { atMost: 8 }),
      detail: `${inMs(median(times.webgpu))} / ${inMs(median(times.own))}`,
    });
    if (secondsLeft(bench) < 8) return bench.tell('Its nodes: left out, for time.');
    const sums = await profileOf({ ...bench, device: 'webgpu' }, { model: 'sd15', pixels: size, count: 1 });
    tellSums({ ...bench, device: 'webgpu' }, `sd15 at ${size}, 1 row`, sums);
  },
};
