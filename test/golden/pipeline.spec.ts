import { cpu } from '../support/cpu';
import { hasCuda } from '../support/has-cuda';
import { drawsGoldens, models, type PipelineCase } from '../support/pipeline-goldens';

/** The bundled model, also with its LoRA, and exports whose weights are read as those of any other model. */
describe.each(models)('Pipeline on the CPU, $name', (golden) => {
  drawsGoldens(golden, cpu);
});

/** Threads divide what one call computes, so a short case with guidance and one without meet all of it. */
describe('Pipeline on two threads', () => {
  const [{ name, ...golden }] = models;
  const isChosen = ({ cfg, steps }: PipelineCase) => steps <= 10 && cfg < 2;
  drawsGoldens({ ...golden, name: `${name} on two threads` }, { ...cpu, intraOpNumThreads: 2 }, isChosen);
});

/** On CUDA, convolutions use TF32, which has the ten-bit mantissa of float16, and all else is in float16. */
(hasCuda() ? describe : describe.skip).each(models)('Pipeline on CUDA, $name', (golden) => {
  drawsGoldens({ ...golden, name: `${golden.name} on CUDA`, latents: Infinity, decibels: 40 }, { device: 'cuda:0' });
});
