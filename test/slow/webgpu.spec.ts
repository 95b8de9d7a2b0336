import { cpu } from '../support/cpu';
import { hasWebgpu } from '../support/has-webgpu';
import { drawsGoldens, models, type PipelineCase } from '../support/pipeline-goldens';

/** A software device takes a second for each step: one model, and one picture, which is wide and has guidance. */
(hasWebgpu() ? describe : describe.skip)('Pipeline on WebGPU', () => {
  const [, { name, ...golden }] = models;
  const isChosen = ({ width, height, steps }: PipelineCase) => width > height && steps === 2;
  drawsGoldens({ ...golden, name: `${name} on WebGPU` }, { ...cpu, device: 'webgpu' }, isChosen);
});
