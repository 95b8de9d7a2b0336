import { cures } from '../errors';
import { embeddingWidth } from './parts-fit';
import type { GraphFile } from './graph-file';
import type { JsonObject } from './model-files';

interface Part {
  graph?: number;
  config?: JsonObject;
}

describe(embeddingWidth, () => {
  const graph = (path: string, width?: number) => ({ path, embeddingWidth: width }) as GraphFile;
  const widthOf = (textEncoder: Part, unet: Part) =>
    embeddingWidth({
      path: '/m',
      textEncoder: graph('/m/text_encoder/model.onnx', textEncoder.graph),
      unet: graph('/m/unet/model.onnx', unet.graph),
      configs: { textEncoder: textEncoder.config ?? {}, unet: unet.config ?? {}, vaeDecoder: {} },
    });

  it.each<[what: string, textEncoder: Part, unet: Part, width: number | undefined]>([
    ['of the graphs', { graph: 768 }, { graph: 768 }, 768],
    ['of the configurations', { config: { hidden_size: 768 } }, { config: { cross_attention_dim: 768 } }, 768],
    ['of either', { config: { hidden_size: 768 } }, {}, 768],
    [
      'of the other where one lists a width for each block',
      { graph: 768 },
      { config: { cross_attention_dim: [9] } },
      768,
    ],
    ['of none', {}, {}, undefined],
  ])('is that %s', (_, textEncoder, unet, width) => expect(widthOf(textEncoder, unet)).toBe(width));

  it.each<[what: string, textEncoder: Part, unet: Part, sentence: string]>([
    [
      'two graphs',
      { graph: 1024, config: { hidden_size: 1024 } },
      { graph: 768, config: { cross_attention_dim: 768 } },
      '/m/text_encoder/model.onnx gives embeddings 1024 wide, and the U-Net takes 768.',
    ],
    [
      'two configurations',
      { config: { hidden_size: 1024 } },
      { config: { cross_attention_dim: 768 } },
      '/m/text_encoder/model.onnx gives embeddings 1024 wide, and the U-Net takes 768.',
    ],
    [
      'a U-Net and its configuration',
      {},
      { graph: 768, config: { cross_attention_dim: 999 } },
      '/m/unet/config.json has a cross_attention_dim of 999, and the embeddings of the graph beside it are 768 wide.',
    ],
    [
      'a text encoder and its configuration',
      { graph: 768, config: { hidden_size: 512 } },
      {},
      '/m/text_encoder/config.json has a hidden_size of 512, and the embeddings of the graph beside it are 768 wide.',
    ],
  ])('are refused if those of %s differ', (_, textEncoder, unet, sentence) =>
    expect(() => widthOf(textEncoder, unet)).toThrow(new Error(`${sentence} ${cures.oneExport}`)),
  );
});
