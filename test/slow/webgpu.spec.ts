import { existsSync } from 'node:fs';
import { cpu } from '../support/cpu';
import { drawsGoldens, models, type PipelineCase } from '../support/pipeline-goldens';

/** A software device takes a second for each step: one model, and one picture, which is wide and has guidance. */
(hasWebgpu() ? describe : describe.skip)('Pipeline on WebGPU', () => {
  const [, { name, ...golden }] = models;
  const isChosen = ({ width, height, steps }: PipelineCase) => width > height && steps === 2;
  drawsGoldens({ ...golden, name: `${name} on WebGPU` }, { ...cpu, device: 'webgpu' }, isChosen);
});

/** Whether Vulkan was given a device, real or in software, and its library: see `scripts/test.mjs`. */
function hasWebgpu(): boolean {
  return process.env.VK_ICD_FILENAMES !== undefined || existsSync('/dev/dri/renderD128');
}
