import {
  ernieImagePositions,
  ernieImageTransformer2DModel,
  ernieImageTransformerConfigOf,
} from '../architectures/ernie-image-transformer-2d-model';
import { mistralConfigOf } from '../architectures/mistral-model';
import type { LatentSize } from '../architectures/rotary';
import { statesOf } from '../conditioners/language-model-conditioner';
import { TransformerFiles } from '../denoisers/transformer';
import { resultsOf } from '../errors';
import type { ModuleOptions } from '../graph/module';
import { LanguageModelTokenizer } from '../tokenizer/language-model-tokenizer';
import { autoencoderKlFlux2 } from './autoencoders';
import type { Family, ModelParts, ReadFiles } from './family';
import { configOf } from './read-config';
import { cannotAll, type LanguageModel, languageModelOf, type LayersReading, parts } from './transformers';

/** As long as its tokenizer says that a text may be. */
const maxTokens = 2048;
const beginOfText = '<s>';

const ministral3: LanguageModel = {
  configOf: mistralConfigOf,
  tokenizerOf: (folder) => LanguageModelTokenizer.load(folder, [beginOfText]),
  prefix: 'language_model.',
};

/** The states before the last layer, of the text without a template. Source: `ErnieImagePipeline` of diffusers. */
const readingOf = (layers: number): LayersReading => ({
  promptOf: (text) => beginOfText + text,
  maxTokens,
  layers: [layers - 1],
  encodedTokens: (tokens) => tokens,
  conditioningOf: (states, encoded) => ({ row: statesOf(states, encoded), length: encoded }),
});

/** ERNIE-Image, turbo or not: one text encoder, a transformer of one stream, FLUX.2's autoencoder. */
export const ernieImage: Family = {
  name: 'ernie-image',
  title: 'ERNIE-Image',
  pipelines: /^ErnieImagePipeline$/,
  denoiserPart: 'transformer',
  parts,
  nativeSize: 1024,
  latentChannels: (tensors) => tensors.get('transformer')!.get('x_embedder.proj.weight')?.shape[1],
  scheduler: { usual: { _class_name: 'FlowMatchEulerDiscreteScheduler', shift: 4 }, fixed: {} },
  keptInFloat: /emb|modulation|norm|lm_head|final_linear|text_proj/,
  recognises: ({ tensors }) => tensors.get('transformer')?.has('final_linear.weight') === true,
  partsOf,
};

async function partsOf(files: ReadFiles): Promise<ModelParts> {
  const { tensors, files: from } = files;
  const own = tensors.get('transformer')!;
  const found = await resultsOf({
    denoiser: () => {
      const config = configOf(files, 'transformer', ernieImageTransformerConfigOf) ?? ernieImageTransformerConfigOf({});
      const [inner] = own.get('layers.0.mlp.up_proj.weight')?.shape ?? [0];
      const use = {
        build: (options: ModuleOptions) => ernieImageTransformer2DModel(options, config),
        positionsOf: (text: number, size: LatentSize) => ernieImagePositions(text, size, config),
        takesReferences: false,
        timeOf: (timestep: number) => timestep,
        sign: 1,
        patch: 1,
        textTokens: maxTokens,
        tokenWidth: 3 * inner,
      } as const;
      return new TransformerFiles(own, from.get('transformer')!, use, 'rows');
    },
    conditioner: () => languageModelOf(files, ministral3, readingOf),
    // The pipeline's own, whatever the configuration says.
    autoencoder: () => autoencoderKlFlux2(files, 1e-5),
  });
  return { ...found, cannot: cannotAll, usual: { steps: 50, cfg: 4 } };
}
