import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cpu } from '../support/cpu';
import { drawsGoldens, models, type PipelineCase } from '../support/pipeline-goldens';

describe.each(models)('StableDiffusionPipeline on the CPU, $name', (golden) => {
  drawsGoldens(golden, cpu);
});

/**
 * Threads divide what one call computes, so one short case with guidance and one without meet all of it in the large
 * model.
 */
describe.each(models.slice(0, 2))('StableDiffusionPipeline on two threads, $name', (golden) => {
  const options = { ...cpu, intraOpNumThreads: 2 };
  const isChosen = ({ cfg, steps, width }: PipelineCase) => width < 512 || (steps <= 10 && cfg < 2);
  drawsGoldens({ ...golden, name: `${golden.name} on two threads` }, options, isChosen);
});

/**
 * On CUDA, convolutions use TF32, which has the ten-bit mantissa of float16, so float16's tolerance applies to all
 * models there.
 */
(hasCuda() ? describe : describe.skip).each(models)('StableDiffusionPipeline on CUDA, $name', (golden) => {
  drawsGoldens({ ...golden, name: `${golden.name} on CUDA`, latents: Infinity, decibels: 40 }, { device: 'cuda:0' });
});

/** Whether there is a GPU, and the execution provider is installed beside ONNX Runtime. */
function hasCuda(): boolean {
  const runtime = join(require.resolve('onnxruntime-node'), '../../bin/napi-v6', process.platform, process.arch);
  return existsSync('/dev/nvidia0') && existsSync(join(runtime, 'libonnxruntime_providers_cuda.so'));
}
