import { modelTensors } from '../../../../test/support/model-tensors';
import { mutations } from '../../../../test/support/mutations';
import { encodeSafetensors, type TensorToWrite } from '../../../../test/support/safetensors';
import { SafetensorsError } from '../safetensors/safetensors-header';
import { BufferSource } from '../tensor/byte-source';
import { adapterOf, assertFinite } from './adapter-file';
import { fitAdapter } from './fit-adapter';
import { WeightsError, type WeightsErrorCode } from './weights-error';

const layer = 'down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k';
const encoderLayer = (i: number) => `text_model.encoder.layers.${i}.mlp.fc1`;
const ofText = (width: number) => ({
  'text_model.embeddings.token_embedding.weight': [50, width],
  'text_model.embeddings.position_embedding.weight': [7, width],
  [`${encoderLayer(0)}.weight`]: [8, width],
  [`${encoderLayer(0)}.bias`]: [8],
});
const unet = {
  [`${layer}.weight`]: [6, 4],
  'conv_in.weight': [6, 4, 3, 3],
  'conv_in.bias': [6],
  'mid_block.attentions.0.proj_in.weight': [6, 4],
  'up_blocks.0.attentions.0.proj_in.weight': [6, 4, 1, 1],
  'conv_norm_out.weight': [6],
  'conv_norm_out.bias': [6],
};
const sd1 = modelTensors({ unet, text_encoder: ofText(4) });
const xl = modelTensors({ unet, text_encoder: ofText(4), text_encoder_2: ofText(5) });

type Tensors = Record<string, TensorToWrite>;

const ones = (...shape: number[]): TensorToWrite => ({
  shape,
  values: new Array<number>(shape.reduce((a, b) => a * b, 1)).fill(1),
});
const pair = (name: string, down = ones(2, 4), up = ones(6, 2)): Tensors => ({
  [`${name}.lora_down.weight`]: down,
  [`${name}.lora_up.weight`]: up,
});
const [a, b] = [ones(6, 3), ones(3, 4)];
const loha = Object.fromEntries(
  Object.entries({ w1_a: a, w1_b: b, w2_a: a, w2_b: b }).map(([key, value]) => [`unet.${layer}.hada_${key}`, value]),
);
const sourceOf = (tensors: Tensors, metadata?: Record<string, string>) =>
  new BufferSource(encodeSafetensors(tensors, metadata));
const fit = (tensors: Tensors, model = sd1, metadata?: Record<string, string>) => {
  const source = sourceOf(tensors, metadata);
  const adapter = adapterOf(source, 'none');
  const fitted = fitAdapter(adapter, model);
  assertFinite(adapter, source);
  return fitted;
};
const namesOf = ({ layers, merged }: ReturnType<typeof fit>) => ({
  layers: [...layers].map(([part, own]) => [part, ...own.keys()]),
  merged: [...merged].map(([part, own]) => [part, ...own.keys()]),
});
const refusal = (judge: () => unknown): { code: WeightsErrorCode; message: string } => {
  try {
    judge();
  } catch (error) {
    if (error instanceof WeightsError) return error;
    throw error;
  }
  throw new Error('It was accepted.');
};

describe('An adapter', () => {
  it('of low rank is factors for inputs, in the shape of their layer', () => {
    const tensors = {
      ...pair(`unet.${layer}`),
      ...pair('lora_unet_conv_in', ones(2, 4, 3, 3), ones(6, 2, 1, 1)),
      ...pair('unet.mid_block.attentions.0.proj_in', ones(2, 4, 1, 1), ones(6, 2, 1, 1)),
      ...pair('unet.up_blocks.0.attentions.0.proj_in'),
    };
    const fitted = fit(tensors);
    expect(namesOf(fitted).merged).toEqual([]);
    expect(Object.fromEntries([...fitted.layers.get('unet')!].map(([path, { aShape }]) => [path, aShape]))).toEqual({
      [layer]: [2, 4],
      conv_in: [2, 4, 3, 3],
      'mid_block.attentions.0.proj_in': [2, 4],
      'up_blocks.0.attentions.0.proj_in': [2, 4, 1, 1],
    });
  });

  it.each<[string, Tensors, string[]]>([
    ['a DoRA', { ...pair(`unet.${layer}`), [`unet.${layer}.dora_scale`]: ones(6, 1) }, [`${layer}.weight`]],
    ['a LoHa', loha, [`${layer}.weight`]],
    ['a LoKr', { [`unet.${layer}.lokr_w1`]: ones(2, 2), [`unet.${layer}.lokr_w2`]: ones(3, 2) }, [`${layer}.weight`]],
    ['a high rank', pair(`unet.${layer}`, ones(200, 4), ones(6, 200)), [`${layer}.weight`]],
    ['a bias', { 'lora_unet_conv_in.diff_b': ones(6) }, ['conv_in.bias']],
    [
      'a normalisation',
      { 'lora_unet_conv_norm_out.w_norm': ones(6), 'lora_unet_conv_norm_out.b_norm': ones(6) },
      ['conv_norm_out.weight', 'conv_norm_out.bias'],
    ],
  ])('of %s is merged', (_, tensors, names) =>
    expect(namesOf(fit(tensors))).toEqual({ layers: [], merged: [['unet', ...names]] }),
  );

  it('of an embedding is merged, because it is looked up in', () => {
    const table = pair('lora_te_text_model_embeddings_token_embedding', ones(2, 4), ones(50, 2));
    expect(namesOf(fit(table)).merged).toEqual([['text_encoder', 'text_model.embeddings.token_embedding.weight']]);
  });

  it('is noted where its strength is assumed', () => {
    const alpha = { [`unet.${layer}.alpha`]: { shape: [], values: [2], dtype: 'I64' as const } };
    expect(fit(pair(`unet.${layer}`)).note).toMatch(/does not say/);
    expect(fit({ ...pair(`unet.${layer}`), ...alpha })).not.toHaveProperty('note');
    const metadata = { lora_adapter_metadata: '{"unet.lora_alpha": 1}' };
    expect(fit(pair(`unet.${layer}`), sd1, metadata)).not.toHaveProperty('note');
    expect(fit({ [`unet.${layer}.diff`]: ones(6, 4) })).not.toHaveProperty('note');
  });

  it('leaves out what clip skip has left out of the model, but not everything', () => {
    const [own, further] = [0, 1].map((i) => pair(`text_encoder.${encoderLayer(i)}`, ones(2, 4), ones(8, 2)));
    expect(namesOf(fit({ ...own, ...further })).layers).toEqual([['text_encoder', encoderLayer(0)]]);
    expect(refusal(() => fit(further)).code).toBe('WeightsDoNotFitModel');
  });

  it('of a text encoder without a name is for the one that it fits', () => {
    const name = `base_model.model.${encoderLayer(0)}`;
    expect(namesOf(fit(pair(name, ones(2, 5), ones(8, 2)), xl)).layers).toEqual([['text_encoder_2', encoderLayer(0)]]);
  });

  it.each<[string, Tensors, WeightsErrorCode, RegExp]>([
    ['without tensors', {}, 'WeightsMalformed', /no tensors/],
    ['with one factor', { 'unet.conv_in.lora_A.weight': ones(2, 4) }, 'WeightsMalformed', /no up factor/],
    ['with an alpha alone', { 'unet.conv_in.alpha': ones() }, 'WeightsMalformed', /no factors/],
    ['whose ranks differ', pair(`unet.${layer}`, ones(2, 4), ones(6, 3)), 'WeightsMalformed', /\[2, 4\] and \[6, 3\]/],
    ['of rank 0', pair(`unet.${layer}`, ones(0, 4), ones(6, 0)), 'WeightsMalformed', /empty/],
    ['of integers', pair(`unet.${layer}`, { ...ones(2, 4), dtype: 'I32' }), 'WeightsMalformed', /type I32/],
    [
      'with a NaN',
      pair(`unet.${layer}`, { ...ones(2, 4), values: new Array(8).fill(NaN) }),
      'WeightsMalformed',
      /not finite/,
    ],
    [
      'with two alphas',
      { ...pair(`unet.${layer}`), [`unet.${layer}.alpha`]: ones(2) },
      'WeightsMalformed',
      /single number/,
    ],
    [
      'with an alpha that is no number',
      { ...pair(`unet.${layer}`), [`unet.${layer}.alpha`]: { shape: [], values: [NaN] } },
      'WeightsMalformed',
      /not finite/,
    ],
    [
      'with a layer twice',
      { ...pair(`unet.${layer}`), [`unet.${layer.replace('.to_k', '_to_k')}.lora_A.weight`]: ones(2, 4) },
      'WeightsMalformed',
      /are for the same layer/,
    ],
    [
      'with a layer by two names',
      { ...pair('unet.conv_in'), ...pair('lora_unet_conv_in') },
      'WeightsMalformed',
      /are for the same layer/,
    ],
    [
      'with a layer in two prefixes',
      { ...pair(`unet.${layer}`), ...pair(`base_model.model.${layer}`) },
      'WeightsMalformed',
      /are for the same layer/,
    ],
    [
      'of two forms',
      { ...pair(`unet.${layer}`), [`unet.${layer}.diff`]: ones(6, 4) },
      'WeightsMalformed',
      /lora and diff/,
    ],
    [
      'with a middle factor of another rank',
      { ...pair('unet.conv_in', ones(2, 4, 1, 1)), 'unet.conv_in.lora_mid.weight': ones(3, 3, 3, 3) },
      'WeightsMalformed',
      /middle factor \[3, 3, 3, 3\]/,
    ],
    [
      'of another kernel',
      pair('unet.conv_in', ones(2, 4, 1, 1), ones(6, 2, 1, 1)),
      'WeightsDoNotFitModel',
      /shape \[6, 4, 1, 1\]; the base model's is \[6, 4, 3, 3\]\.$/,
    ],
    [
      'of another family',
      pair(`unet.${layer}`, ones(2, 2048), ones(6, 2)),
      'WeightsDoNotFitModel',
      /is \[6, 4\]: the file is probably for Stable Diffusion XL\.$/,
    ],
    ['of a bias that is not there', { [`unet.${layer}.diff_b`]: ones(6) }, 'WeightsDoNotFitModel', /does not have/],
    [
      'of lengths that are none of its layer',
      { ...pair(`unet.${layer}`), [`unet.${layer}.dora_scale`]: ones(5, 1) },
      'WeightsDoNotFitModel',
      /magnitudes of shape \[5, 1\]/,
    ],
    [
      'of a rank that adds nothing',
      pair(`unet.${layer}`, ones(1025, 4), ones(6, 1025)),
      'WeightsTooComplex',
      /at most 1024/,
    ],
    [
      'with a name that would turn its line',
      pair('unet.\u202elayer'),
      'WeightsDoNotFitModel',
      /"unet\.\\u\{202e\}layer/,
    ],
  ])('is refused %s', (_, tensors, code, sentence) => {
    const { code: found, message } = refusal(() => fit(tensors));
    expect(message).toMatch(sentence);
    expect(found).toBe(code);
  });

  describe('of a transformer', () => {
    const klein = modelTensors({
      transformer: {
        ...Object.fromEntries(
          ['to_q', 'to_k', 'to_v'].map((name) => [`transformer_blocks.0.attn.${name}.weight`, [6, 4]]),
        ),
        'norm_out.linear.weight': [6, 4],
      },
      text_encoder: {},
    });
    const fused = 'diffusion_model.double_blocks.0.img_attn.qkv';
    const qkv = pair(fused, ones(2, 4), ones(18, 2));
    const split = pair('transformer.transformer_blocks.0.attn.to_k');
    const unknown = pair('text_encoder.model.layers.0.self_attn.q_proj');
    const layersOf = (tensors: Tensors) => namesOf(fit(tensors, klein)).layers[0];

    it('may have one layer of the file for several of the model', () =>
      expect(layersOf(qkv)).toEqual([
        'transformer',
        ...['q', 'k', 'v'].map((x) => `transformer_blocks.0.attn.to_${x}`),
      ]));

    it('of a high rank is not merged into a wide layer, whose weight is much larger', () => {
      const wide = modelTensors({ transformer: { 'norm_out.linear.weight': [4096, 4096] }, text_encoder: {} });
      const ofRank = (rank: number) =>
        namesOf(fit(pair('diffusion_model.final_layer.adaLN_modulation.1', ones(rank, 4096), ones(4096, rank)), wide));
      expect(ofRank(512).layers).toEqual([['transformer', 'norm_out.linear']]);
      expect(ofRank(513).merged).toEqual([['transformer', 'norm_out.linear.weight']]);
    });

    it("counts once where the file says it under the model's and under the original's names, and tells it", () => {
      for (const tensors of [
        { ...qkv, ...split },
        { ...split, ...qkv },
      ])
        expect(fit(tensors, klein).note).toMatch(/^Of 4 tensors 2 are left out: .* under another name too, .*img_attn/);
      expect(layersOf({ ...qkv, ...split })).toHaveLength(4);
    });

    it('is told of which tensors the model has no layer, unless it has none for all', () => {
      const alpha = { [`${Object.keys(unknown)[0].split('.lora')[0]}.alpha`]: ones() };
      expect(fit({ ...unknown, ...alpha, ...qkv }, klein).note).toMatch(
        /^Of 5 tensors 3 are left out: .* the base model does not have, such as that of "text_encoder\.model.*\. The file/,
      );
      expect(refusal(() => fit({ ...unknown, ...alpha }, klein)).message).toMatch(/only the transformer takes a LoRA/);
    });

    it.each<[string, Tensors, WeightsErrorCode, RegExp]>([
      [
        'in other parts',
        pair(fused, ones(2, 4), ones(20, 2)),
        'WeightsDoNotFitModel',
        /for 3 equal layers; .* \[20, 4\]/,
      ],
      [
        'with lengths of the inputs of several layers',
        { ...qkv, [`${fused}.dora_scale`]: ones(1, 4) },
        'WeightsKindUnsupported',
        /for 3 layers, and its magnitudes are of their inputs/,
      ],
      [
        'that another model of its family has',
        pair(fused, ones(2, 4096), ones(3 * 4096, 2)),
        'WeightsDoNotFitModel',
        /is \[6, 4\]: the file is probably for FLUX.2 \[klein\] 9B\.$/,
      ],
      [
        'of another family, be some of its names those of this one',
        { ...split, ...pair('transformer.transformer_blocks.59.attn.to_k') },
        'WeightsDoNotFitModel',
        /"transformer.transformer_blocks.59.*" is for Qwen-Image, which is another family/,
      ],
    ])('is refused %s', (_, tensors, code, sentence) => {
      const { code: found, message } = refusal(() => fit(tensors, klein));
      expect(message).toMatch(sentence);
      expect(found).toBe(code);
    });
  });

  it('that is damaged is refused with a plain error', () => {
    const tensors = { ...pair(`unet.${layer}`), [`unet.${layer}.alpha`]: ones(1) };
    const good = encodeSafetensors(tensors, { lora_adapter_metadata: '{"unet.r":2,"unet.lora_alpha":8}' });
    const outcomes = { refused: 0, read: 0 };
    for (const bytes of mutations(good, 3000)) {
      try {
        fitAdapter(adapterOf(new BufferSource(bytes), 'none'), sd1);
        outcomes.read++;
      } catch (error) {
        if (!(error instanceof SafetensorsError)) expect(error).toBeInstanceOf(WeightsError);
        outcomes.refused++;
      }
    }
    expect(outcomes.refused).toBeGreaterThan(2000);
    expect(outcomes.read).toBeGreaterThan(10);
  });

  it.each([
    ['a zip archive', 'PK\x03\x04 and so on'],
    ['a pickle', '\x80\x02}q\x00(X\x04\x00 and so on'],
  ])('that is %s is called a pickle', (_, text) => {
    const { message } = refusal(() => adapterOf(new BufferSource(Buffer.from(text, 'latin1')), 'none'));
    expect(message).toMatch(/pickle of PyTorch/);
  });
});
