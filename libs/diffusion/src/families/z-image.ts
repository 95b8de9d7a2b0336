import {
  zImageMultiple,
  zImagePositions,
  zImageTransformer2DModel,
  zImageTransformerConfigOf,
} from '../architectures/z-image-transformer-2d-model';
import type { LatentSize } from '../architectures/rotary';
import { TransformerFiles } from '../denoisers/transformer';
import { resultsOf } from '../errors';
import type { ModuleOptions } from '../graph/module';
import { bool, float32 } from '../sessions/tensor';
import { autoencoderKl } from './autoencoders';
import type { Family, ModelParts, ReadFiles } from './family';
import { configOf } from './read-config';
import { cannotAll, parts, type LayersReading, qwen3Of, qwen3Prompt, usualConfigs } from './transformers';

const maxTokens = 512;

/**
 * The states before the last layer, of the text's own tokens. The picture attends to their padding too, so that it goes
 * up to the next multiple and never further. Source: `ZImagePipeline` of diffusers.
 */
const readingOf = (layers: number): LayersReading => ({
  promptOf: (text) => qwen3Prompt(text, { enableThinking: true }),
  maxTokens,
  layers: [layers - 1],
  encodedTokens: (tokens) => tokens,
  conditioningOf: (states, encoded) => {
    const width = states.length / encoded;
    const length = Math.ceil(encoded / zImageMultiple) * zImageMultiple;
    const padded = new Float32Array(length * width);
    padded.set(states);
    const isPadding = Uint8Array.from({ length }, (_, token) => Number(token >= encoded));
    const row = {
      encoder_hidden_states: float32(padded, [length, width]),
      is_padding: bool(isPadding, [length, 1]),
    };
    return { row, length };
  },
});

/** Layers of attention as diffusers' training script has them. */
const training = {
  layers: {
    attention: /\.attention\.(?:to_[qkv]|to_out\.0)$/,
    all: /\.(?:attention\.(?:to_[qkv]|to_out\.0)|feed_forward\.w[123])$/,
  },
  blocks: /^(?:layers|(?:noise|context)_refiner)\.\d+/,
};

/** Of the noise levels that Z-Image-Turbo was distilled for, and of Z-Image's. Nothing else in their files tells. */
const [turboShift, plainShift] = [3, 6];
const schedulerOf = (shift: number) => ({ _class_name: 'FlowMatchEulerDiscreteScheduler', shift });

/** Z-Image, turbo or not: one text encoder, a transformer, the 16 channels of FLUX.1's autoencoder. */
export const zImage: Family = {
  name: 'z-image',
  title: 'Z-Image',
  pipelines: /^ZImage(Img2Img|Inpaint)?Pipeline$/,
  denoiserPart: 'transformer',
  parts,
  nativeSize: 1024,
  // A token is of 2 x 2 latents.
  latentChannels: (tensors) => {
    const patch = tensors.get('transformer')!.get('all_x_embedder.2-1.weight')?.shape[1];
    return patch && patch / 4;
  },
  textWidth: (tensors) => tensors.get('transformer')!.get('cap_embedder.0.weight')?.shape[0],
  described: {
    // Models that were made of either are mostly of the turbo, which its own name says.
    isDistilled: (name) => !/base/i.test(name) && !/^z[-_ ]?image(?![-_ ]?turbo)/i.test(name),
    filesOf: (tensors, isDistilled) => {
      const [headDim] = tensors.get('transformer')!.get('layers.0.attention.norm_q.weight')?.shape ?? [128];
      return {
        'model_index.json': { _class_name: 'ZImagePipeline' },
        'scheduler/scheduler_config.json': schedulerOf(isDistilled ? turboShift : plainShift),
        'transformer/config.json': { axes_dims: [2, 3, 3].map((eighths) => (headDim / 8) * eighths) },
        ...usualConfigs(tensors),
      };
    },
  },
  scheduler: { usual: schedulerOf(turboShift), fixed: {} },
  keptInFloat: /emb|modulation|norm|lm_head|final_layer/,
  recognises: ({ tensors }) => tensors.get('transformer')?.has('cap_pad_token') === true,
  partsOf,
};

async function partsOf(files: ReadFiles): Promise<ModelParts> {
  const { tensors, files: from, schedulerJson } = files;
  const own = tensors.get('transformer')!;
  const found = await resultsOf({
    denoiser: () => {
      const config = configOf(files, 'transformer', zImageTransformerConfigOf) ?? zImageTransformerConfigOf({});
      const use = {
        build: (options: ModuleOptions) => zImageTransformer2DModel(options, config),
        positionsOf: (text: number, { height, width }: LatentSize) => zImagePositions(text, height, width, config),
        takesReferences: false,
        timeOf: (timestep: number) => (1000 - timestep) / 1000,
        sign: -1,
        patch: 2,
        textTokens: maxTokens,
        tokenWidth: 9 * (own.get('cap_pad_token')!.shape.at(-1) ?? 0),
        training,
      } as const;
      return new TransformerFiles(own, from.get('transformer')!, use, 'rows');
    },
    conditioner: () => qwen3Of(files, readingOf),
    autoencoder: () => autoencoderKl(files, { factor: 0.3611, shift: 0.1159 }),
  });
  const isTurbo = Number(schedulerJson.shift ?? turboShift) <= turboShift;
  return { ...found, cannot: cannotAll, usual: isTurbo ? { steps: 8, cfg: 1 } : { steps: 50, cfg: 5 } };
}
