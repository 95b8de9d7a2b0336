import type { GpuSection } from '../gpu-section';
import { adapterInputs } from './adapter-inputs';
import { environment } from './environment';
import { goldens } from './goldens';
import { wholePicture } from './pictures';
import { profile } from './profile';
import { rowCurve } from './rows';
import { training } from './training';
import { webgpu } from './webgpu';

const most = { atMost: 1 };

/** In the order of their importance: the last ones are left out where time is short. */
export const sections: readonly GpuSection[] = [
  environment,
  goldens,
  rowCurve({
    model: 'sd15',
    pixels: 512,
    counts: [1, 8, 2, 4],
    goals: { 1: { atMost: 0.7 }, 8: most },
    seconds: 60,
    torch: 'eager',
  }),
  adapterInputs,
  rowCurve({ model: 'klein', pixels: 1024, counts: [1, 2, 4, 8], goals: { 1: most }, seconds: 75, torch: 'eager' }),
  rowCurve({
    model: 'sdxl',
    pixels: 1024,
    counts: [1, 2, 4, 8],
    goals: { 1: { atMost: 0.9 } },
    seconds: 75,
    torch: 'eager',
  }),
  rowCurve({ model: 'z-image', pixels: 1024, counts: [1, 2, 4], seconds: 75, torch: 'eager' }),
  wholePicture({ model: 'klein', steps: 4, guidanceScale: 1, public: { ms: 370, of: 'SGLang on an H200' } }),
  profile,
  wholePicture({
    model: 'z-image',
    steps: 9,
    guidanceScale: 1,
    public: { ms: 1930, of: 'SGLang, compiled, on an H100' },
  }),
  wholePicture({ model: 'sdxl', steps: 20, guidanceScale: 5 }),
  training('sd15', [1, 4]),
  webgpu,
  rowCurve({ model: 'sd15', pixels: 512, counts: [1, 8], seconds: 120, torch: 'compiled' }),
  rowCurve({ model: 'sdxl', pixels: 512, counts: [1, 2, 4, 8], seconds: 40 }),
  rowCurve({ model: 'klein', pixels: 512, counts: [1, 2, 4, 8], seconds: 40 }),
  training('klein', [1]),
  rowCurve({ model: 'klein', pixels: 1024, counts: [1], seconds: 120, torch: 'compiled' }),
];
