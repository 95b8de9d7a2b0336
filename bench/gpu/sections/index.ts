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

const [few, many] = [
  [1, 2, 4],
  [1, 2, 4, 8],
];

/**
 * In the order of their importance: the last ones are left out where time is short. Up to the first training they fit
 * eight minutes even if each takes the most that it may.
 */
export const sections: readonly GpuSection[] = [
  environment,
  goldens,
  rowCurve({
    ...{ model: 'sd15', pixels: 512, counts: [1, 8, 2, 4], torch: 'eager', seconds: 35 },
    goals: { 1: { atMost: 0.7 }, 8: most },
  }),
  rowCurve({ model: 'sdxl', pixels: 1024, counts: many, torch: 'eager', seconds: 45, goals: { 1: { atMost: 0.9 } } }),
  rowCurve({ model: 'klein', pixels: 1024, counts: many, torch: 'eager', seconds: 45, goals: { 1: most } }),
  rowCurve({ model: 'z-image', pixels: 1024, counts: few, torch: 'eager', seconds: 45 }),
  wholePicture({ model: 'klein', steps: 4, guidanceScale: 1, public: { ms: 370, of: 'SGLang on an H200' } }),
  wholePicture({
    ...{ model: 'z-image', steps: 9, guidanceScale: 1 },
    public: { ms: 1930, of: 'SGLang, compiled, on an H100' },
  }),
  adapterInputs,
  profile,
  webgpu,
  training('sd15', [1, 4]),
  wholePicture({ model: 'sdxl', steps: 20, guidanceScale: 5 }),
  rowCurve({ model: 'sdxl', pixels: 512, counts: many, seconds: 25 }),
  rowCurve({ model: 'klein', pixels: 512, counts: many, seconds: 25 }),
  training('klein', [1]),
  rowCurve({ model: 'sd15', pixels: 512, counts: [1, 8], torch: 'compiled', seconds: 120 }),
  rowCurve({ model: 'klein', pixels: 1024, counts: [1], torch: 'compiled', seconds: 120 }),
];
