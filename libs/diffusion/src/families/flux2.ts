import { join } from 'node:path';
import {
  flux2Positions,
  flux2Transformer2DModel,
  flux2TransformerConfigOf,
} from '../architectures/flux2-transformer-2d-model';
import type { LatentSize } from '../architectures/rotary';
import { statesOf } from '../conditioners/language-model-conditioner';
import { TransformerFiles } from '../denoisers/transformer';
import { cures, ModelFolderError, resultsOf } from '../errors';
import type { ModuleOptions } from '../graph/module';
import { computeEmpiricalMu } from '../schedulers/flow-sigmas';
import { autoencoderKlFlux2 } from './autoencoders';
import type { Family, ModelParts, ReadFiles } from './family';
import { configOf } from './read-config';
import { cannotAll, parts, type LayersReading, qwen3Of, qwen3Prompt, usualConfigs } from './transformers';

const maxTokens = 512;

/** The states of three layers side by side, those of the padding too. Source: `Flux2KleinPipeline` of diffusers. */
const reading: LayersReading = {
  promptOf: (text) => qwen3Prompt(text, { enableThinking: false }),
  maxTokens,
  layers: [9, 18, 27],
  encodedTokens: () => maxTokens,
  conditioningOf: (states, encoded) => ({ row: statesOf(states, encoded), length: encoded }),
};

const usualScheduler = { _class_name: 'FlowMatchEulerDiscreteScheduler', shift: 3, use_dynamic_shifting: true };

/** Layers of attention as diffusers' training script has them: the text's own are not among them. */
const training = {
  layers: {
    attention: /\.attn\.(?:to_[qkv]|to_out(?:\.0)?|to_qkv_mlp_proj)$/,
    all: /\.(?:attn\.(?:to_\w+|to_out\.0|add_[qkv]_proj)|ff(?:_context)?\.linear_(?:in|out))$/,
  },
  blocks: /^(?:single_)?transformer_blocks\.\d+/,
};

const noGuidance = 'It was distilled to draw without guidance.';

/** FLUX.2 [klein], distilled or not: one text encoder, a transformer, latents of 2 x 2 patches. */
export const flux2: Family = {
  name: 'flux2',
  title: 'FLUX.2 [klein]',
  pipelines: /^Flux2Klein(Inpaint)?Pipeline$/,
  denoiserPart: 'transformer',
  parts,
  nativeSize: 1024,
  latentChannels: (tensors) => tensors.get('transformer')!.get('x_embedder.weight')?.shape[1],
  textWidth: (tensors) => {
    const width = tensors.get('transformer')!.get('context_embedder.weight')?.shape[1];
    return width && width / reading.layers.length;
  },
  described: {
    isDistilled: (name) => !/base/i.test(name),
    filesOf: (tensors, isDistilled) => {
      const [headDim] = tensors.get('transformer')!.get('single_transformer_blocks.0.attn.norm_q.weight')?.shape ?? [
        128,
      ];
      return {
        'model_index.json': { _class_name: 'Flux2KleinPipeline', is_distilled: isDistilled },
        'scheduler/scheduler_config.json': usualScheduler,
        'transformer/config.json': { axes_dims_rope: Array<number>(4).fill(headDim / 4) },
        ...usualConfigs(tensors),
      };
    },
  },
  scheduler: { usual: usualScheduler, fixed: {} },
  keptInFloat: /emb|modulation|norm|lm_head|^proj_out\b/,
  recognises: ({ tensors }) => tensors.get('transformer')?.has('double_stream_modulation_img.linear.weight') === true,
  partsOf,
};

/** Without a word of it a model is not distilled, as in `Flux2KleinPipeline` of diffusers. @throws ModelFolderError */
function isDistilledBy({ path, index }: ReadFiles): boolean {
  const value = index?.is_distilled ?? false;
  if (typeof value === 'boolean') return value;
  throw new ModelFolderError(
    join(path, 'model_index.json'),
    'has an is_distilled that is neither true nor false',
    cures.correct,
  );
}

async function partsOf(files: ReadFiles): Promise<ModelParts> {
  const { tensors, files: from } = files;
  const own = tensors.get('transformer')!;
  const isDistilled = isDistilledBy(files);
  const found = await resultsOf({
    denoiser: () => {
      const config = configOf(files, 'transformer', flux2TransformerConfigOf) ?? flux2TransformerConfigOf({});
      const [width] = own.get('x_embedder.weight')?.shape ?? [0];
      const use = {
        build: (options: ModuleOptions) => flux2Transformer2DModel(options, config),
        positionsOf: (text: number, size: LatentSize, references: readonly LatentSize[]) =>
          flux2Positions(text, size, references, config),
        takesReferences: true,
        timeOf: (timestep: number) => timestep / 1000,
        sign: 1,
        patch: 1,
        textTokens: maxTokens,
        tokenWidth: 9 * width,
        training,
      } as const;
      return new TransformerFiles(own, from.get('transformer')!, use, isDistilled ? 'none' : 'rows');
    },
    conditioner: () => qwen3Of(files, () => reading),
    autoencoder: () => autoencoderKlFlux2(files),
  });
  return {
    ...found,
    cannot: { ...cannotAll, ...(isDistilled && { cfg: noGuidance, negative_prompt: noGuidance }) },
    muOf: computeEmpiricalMu,
    usual: isDistilled ? { steps: 4, cfg: 1 } : { steps: 50, cfg: 4 },
  };
}
