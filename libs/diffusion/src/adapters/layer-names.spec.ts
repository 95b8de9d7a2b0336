import { modelTensors } from '../../../../test/support/model-tensors';
import { canonicalName } from './adapter';
import { LayerNames } from './layer-names';

const block = 'transformer_blocks.0';
const unet = [
  'conv_in',
  'conv_out',
  'conv_norm_out',
  'time_embedding.linear_1',
  'add_embedding.linear_2',
  'down_blocks.0.resnets.0.conv1',
  'down_blocks.0.resnets.1.conv1',
  'down_blocks.0.resnets.1.time_emb_proj',
  'down_blocks.0.downsamplers.0.conv',
  'down_blocks.1.attentions.1.proj_in',
  `down_blocks.1.attentions.1.${block}.attn1.to_q`,
  `down_blocks.1.attentions.1.${block}.attn2.to_out.0`,
  `down_blocks.1.attentions.1.${block}.ff.net.0.proj`,
  'mid_block.resnets.1.conv_shortcut',
  `mid_block.attentions.0.${block}.attn1.to_k`,
  'up_blocks.0.upsamplers.0.conv',
  'up_blocks.1.attentions.2.proj_out',
];
const text = ['self_attn.q_proj', 'self_attn.out_proj', 'mlp.fc1', 'mlp.fc2'].flatMap((layer) =>
  [0, 1].map((i) => `text_model.encoder.layers.${i}.${layer}`),
);
const shapes = (paths: string[]) => Object.fromEntries(paths.map((path) => [`${path}.weight`, [2, 2]]));
const sd1 = new LayerNames(modelTensors({ unet: shapes(unet), text_encoder: shapes(text), vae: shapes(['conv_in']) }));
const xl = new LayerNames(
  modelTensors({
    unet: shapes(unet),
    text_encoder: shapes(text),
    text_encoder_2: shapes([...text, 'text_projection']),
  }),
);
const find = (names: LayerNames, name: string) =>
  names.find(canonicalName(name)).flatMap(({ places }) => places.map(({ part, path }) => `${part}: ${path}`));

const attention = 'down_blocks.1.attentions.1';
const flat = attention.replace(/\./g, '_');

describe(LayerNames.name, () => {
  it.each([
    // kohya, OneTrainer, LyCORIS
    [`lora_unet_${flat}_transformer_blocks_0_attn1_to_q`, `${attention}.${block}.attn1.to_q`],
    [`lora_unet.${attention}.${block}.attn1.to_q`, `${attention}.${block}.attn1.to_q`],
    [`lycoris_${flat}_transformer_blocks_0_ff_net_0_proj`, `${attention}.${block}.ff.net.0.proj`],
    ['lora_unet_conv_in', 'conv_in'],
    ['lora_unet_time_embedding_linear_1', 'time_embedding.linear_1'],
    // peft and diffusers, now and before
    [`unet.${attention}.proj_in`, `${attention}.proj_in`],
    [`base_model.model.unet.${attention}.proj_in`, `${attention}.proj_in`],
    [`unet.base_model.model.${attention}.proj_in`, `${attention}.proj_in`],
    [`base_model.model.${attention}.proj_in`, `${attention}.proj_in`],
    [`module.${attention}.proj_in`, `${attention}.proj_in`],
    [`${attention}.${block}.attn1.processor.to_q`, `${attention}.${block}.attn1.to_q`],
    [`unet.${attention}.${block}.attn2.processor.to_out`, `${attention}.${block}.attn2.to_out.0`],
    // LDM
    ['lora_unet_input_blocks_5_1_transformer_blocks_0_attn1_to_q', `${attention}.${block}.attn1.to_q`],
    ['unet.input_blocks.5.1.proj_in', `${attention}.proj_in`],
    ['diffusion_model.input_blocks.2.0.emb_layers.1', 'down_blocks.0.resnets.1.time_emb_proj'],
    ['model.diffusion_model.input_blocks.3.0.op', 'down_blocks.0.downsamplers.0.conv'],
    ['base_model.model.diffusion_model.input_blocks.5.1.proj_in', `${attention}.proj_in`],
    ['lora_unet_input_blocks_0_0', 'conv_in'],
    ['lora_unet_middle_block_2_skip_connection', 'mid_block.resnets.1.conv_shortcut'],
    ['lycoris_middle_block_1_transformer_blocks_0_attn1_to_k', `mid_block.attentions.0.${block}.attn1.to_k`],
    ['unet.output_blocks.2.1.conv', 'up_blocks.0.upsamplers.0.conv'],
    ['diffusion_model.output_blocks.5.1.proj_out', 'up_blocks.1.attentions.2.proj_out'],
    ['lora_unet_time_embed_0', 'time_embedding.linear_1'],
    ['diffusion_model.label_emb.0.2', 'add_embedding.linear_2'],
    ['lora_unet_out_2', 'conv_out'],
    ['diffusion_model.out.0', 'conv_norm_out'],
  ])('finds %s in the U-Net', (name, path) => expect(find(xl, name)).toEqual([`unet: ${path}`]));

  it.each([
    ['lora_te_text_model_encoder_layers_0_mlp_fc1', 'mlp.fc1'],
    ['lora_te.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['text_encoder.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['text_encoder.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['base_model.model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['base_model.model.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['text_encoder.base_model.model.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['text_encoders.clip_l.transformer.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['clip_l.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['cond_stage_model.transformer.text_model.encoder.layers.0.mlp.fc1', 'mlp.fc1'],
    ['text_encoder.text_model.encoder.layers.0.self_attn.to_q', 'self_attn.q_proj'],
    ['text_encoder.text_model.encoder.layers.0.self_attn.to_out', 'self_attn.out_proj'],
    ['cond_stage_model.model.transformer.resblocks.0.mlp.c_proj', 'mlp.fc2'],
    ['cond_stage_model.model.transformer.resblocks.0.attn.out_proj', 'self_attn.out_proj'],
  ])('finds %s in the text encoder', (name, layer) =>
    expect(find(sd1, name)).toEqual([`text_encoder: text_model.encoder.layers.0.${layer}`]),
  );

  it.each([
    ['lora_te1_', 'text_encoder'],
    ['text_encoder.', 'text_encoder'],
    ['text_encoders.clip_l.transformer.', 'text_encoder'],
    ['conditioner.embedders.0.transformer.', 'text_encoder'],
    ['lora_te2_', 'text_encoder_2'],
    ['te2.', 'text_encoder_2'],
    ['text_encoder_2.', 'text_encoder_2'],
    ['clip_g.', 'text_encoder_2'],
    ['text_encoders.clip_g.transformer.', 'text_encoder_2'],
    ['base_model.model.text_encoder_2.', 'text_encoder_2'],
  ])("knows of which of XL's text encoders %s is", (prefix, part) =>
    expect(find(xl, `${prefix}text_model.encoder.layers.1.mlp.fc2`)).toEqual([
      `${part}: text_model.encoder.layers.1.mlp.fc2`,
    ]),
  );

  it('takes a layer for one of either text encoder if nothing says of which', () => {
    expect(find(xl, 'base_model.model.encoder.layers.0.mlp.fc1')).toHaveLength(2);
    expect(find(xl, 'lora_te2_text_projection')).toEqual(['text_encoder_2: text_projection']);
  });

  it.each([
    'vae.decoder.conv_in',
    'lora_unet_down_blocks_0_resnets_9_conv1',
    'transformer.transformer_blocks.0.attn.to_q',
  ])('finds no layer for %s', (name) => expect(find(xl, name)).toEqual([]));

  it('tells layers after the last one of a text encoder from others', () => {
    const isCutOff = (name: string) => sd1.isCutOff(canonicalName(name));
    expect(isCutOff('lora_te_text_model_encoder_layers_2_mlp_fc1')).toBe(true);
    expect(isCutOff('lora_te_text_model_encoder_layers_2_mlp_fc9')).toBe(false);
    expect(isCutOff('lora_te2_text_model_encoder_layers_2_mlp_fc1')).toBe(false);
    expect(isCutOff('lora_unet_down_blocks_9_resnets_0_conv1')).toBe(false);
  });

  it.each([
    ['lora_te2_text_model_encoder_layers_0_mlp_fc1', /a model with several text encoders/],
    ['transformer.single_transformer_blocks.0.attn.to_q', /for FLUX.1, which is another family of models/],
    ['lora_unet_double_blocks_0_img_attn_proj', /for FLUX.2, which is another family of models/],
    ['transformer.something', /another family of models/],
    ['lora_unet_down_blocks_9_resnets_0_conv1', /a layer that the base model's unet does not have, as told/],
    ['text_encoder.encoder.layers.0.nothing', /the base model's text_encoder does not have/],
    ['something', /no part of the model/],
  ])('says why it has no %s', (name, sentence) =>
    expect(sd1.problemOf(canonicalName(name), name, ', as told').message).toMatch(sentence),
  );

  it.each([
    ['transformer.transformer_blocks.0.attn.to_q', /another family of models/],
    ['layers.0.feed_forward.w1', /for Z-Image, which is another family of models/],
  ])('of a U-Net says why it has no %s', (name, sentence) =>
    expect(sd1.problemOf(canonicalName(name), name, '').message).toMatch(sentence),
  );

  it('says that a part without names takes no LoRA', () => {
    const names = new LayerNames(modelTensors({ unet: { 'onnx::MatMul_7': [2, 2] } }));
    expect(names.problemOf('lora_unet_conv_in', 'key', '').message).toMatch(/without its layers' names/);
  });
});

const flux2 = [
  'x_embedder',
  'double_stream_modulation_img.linear',
  'transformer_blocks.0.attn.to_q',
  'transformer_blocks.0.attn.to_k',
  'transformer_blocks.0.attn.to_v',
  'transformer_blocks.0.attn.to_out.0',
  'single_transformer_blocks.0.attn.to_out',
  'norm_out.linear',
];
const zImage = [
  'all_x_embedder.2-1',
  'noise_refiner.0.attention.to_k',
  'layers.0.attention.to_q',
  'layers.0.attention.to_k',
  'layers.0.attention.to_v',
  'layers.0.attention.to_out.0',
  'layers.0.adaLN_modulation.0',
  'all_final_layer.2-1.linear',
];
const ernieImage = [
  'layers.0.adaLN_sa_ln',
  'layers.0.self_attention.to_q',
  'layers.0.mlp.linear_fc2',
  'adaLN_modulation.1',
  'final_norm.linear',
];
const ofTransformer = (paths: string[]) =>
  new LayerNames(
    modelTensors({ transformer: shapes(paths), text_encoder: shapes(['model.layers.0.self_attn.q_proj']) }),
  );

describe.each([
  { family: 'FLUX.2', paths: flux2 },
  { family: 'Z-Image', paths: zImage },
  { family: 'ERNIE-Image', paths: ernieImage },
])('The names of layers of $family', ({ paths }) => {
  const names = ofTransformer(paths);

  it.each([
    '',
    'transformer.',
    'base_model.model.',
    'base_model.model.transformer.',
    'transformer.base_model.model.',
    'diffusion_model.',
    'model.diffusion_model.',
    'base_model.model.diffusion_model.',
    'lora_unet_',
    'lora_transformer_',
    'lycoris_',
    'unet.',
  ])('may begin with "%s"', (prefix) => {
    for (const path of paths) {
      expect(find(names, prefix + path)).toEqual([`transformer: ${path}`]);
      expect(find(names, prefix + path.replaceAll('.', '_'))).toEqual([`transformer: ${path}`]);
    }
  });
});

describe('The names of layers of a transformer', () => {
  const names = ofTransformer(flux2);
  const attention = 'transformer_blocks.0.attn';

  it.each<[string, LayerNames, string[], boolean?]>([
    ['diffusion_model.double_blocks.0.img_attn.qkv', names, ['q', 'k', 'v'].map((name) => `${attention}.to_${name}`)],
    ['lora_unet_double_blocks_0_img_attn_qkv', names, ['q', 'k', 'v'].map((name) => `${attention}.to_${name}`)],
    ['base_model.model.double_blocks.0.img_attn.proj', names, [`${attention}.to_out.0`]],
    ['lora_unet_img_in', names, ['x_embedder']],
    ['diffusion_model.final_layer.adaLN_modulation.1', names, ['norm_out.linear'], true],
    [
      'lora_unet_layers_0_attention_qkv',
      ofTransformer(zImage),
      ['q', 'k', 'v'].map((name) => `layers.0.attention.to_${name}`),
    ],
    ['diffusion_model.layers.0.attention.out', ofTransformer(zImage), ['layers.0.attention.to_out.0']],
    ['lora_unet_x_embedder', ofTransformer(zImage), ['all_x_embedder.2-1']],
  ])('may be those of the original, as in %s', (name, model, paths, isSwapped = false) =>
    expect(model.find(canonicalName(name))).toEqual(
      paths.map((path, index) => ({
        places: [{ part: 'transformer', path }],
        rows: { index, count: paths.length, isSwapped },
      })),
    ),
  );

  it('may have lost their first letters', () =>
    expect(find(names, 'diffusion_model.sformer_blocks.0.attn.to_q')).toEqual([`transformer: ${attention}.to_q`]));

  it.each([
    ['transformer.transformer_blocks.0.attn.to_out', /a layer that the base model's transformer does not have/],
    ['transformer.single_transformer_blocks.0.attn.to_q', /is for FLUX.1, which is another family of models/],
    ['transformer.context_refiner.0.attention.to_k', /is for Z-Image, which is another family of models/],
    ['lora_unet_double_blocks_3_img_attn_qkv', /a layer that the base model's transformer does not have/],
    ['something', /a layer that the base model's transformer does not have/],
    ['text_encoder.model.layers.0.self_attn.q_proj', /the text_encoder; of the base model only the transformer takes/],
    ['lora_te1_text_model_encoder_layers_0_mlp_fc1', /the text_encoder; of the base model only the transformer takes/],
    ['lora_te2_text_model_encoder_layers_0_mlp_fc1', /a model with several text encoders/],
    ['lora_unet_down_blocks_1_attentions_0_proj_in', /is for Stable Diffusion, which is another family/],
    ['unet.mid_block.attentions.0.proj_in', /is for Stable Diffusion, which is another family/],
  ])('have none for %s', (name, sentence) => {
    expect(find(names, name)).toEqual([]);
    expect(names.isCutOff(canonicalName(name))).toBe(false);
    expect(names.problemOf(canonicalName(name), name, '').message).toMatch(sentence);
  });

  it.each([
    ['FLUX.1', 'transformer.single_transformer_blocks.0.attn.to_q', 'transformer.transformer_blocks.0.attn.to_q'],
    ['FLUX.1', 'transformer.single_transformer_blocks.0.proj_mlp'],
    ['FLUX.1', 'lora_unet_double_blocks_0_img_attn_qkv', 'lora_unet_double_blocks_18_img_attn_qkv'],
    ['FLUX.1', 'diffusion_model.double_blocks.0.img_mod.lin'],
    ['FLUX.1', 'lora_unet_single_blocks_0_modulation_lin'],
    ['FLUX.1', 'double_blocks.0.processor.qkv_lora1'],
    ['FLUX.1 or Stable Diffusion 3', 'transformer.transformer_blocks.0.ff.net.0.proj'],
    ['FLUX.1 or Stable Diffusion 3', 'transformer.transformer_blocks.12.attn.to_q'],
    ['HunyuanVideo', 'lora_unet_double_blocks_0_img_attn_qkv', 'lora_unet_double_blocks_0_img_mlp_fc1'],
    ['Stable Diffusion 3', 'transformer.transformer_blocks.0.attn.to_q', 'transformer.transformer_blocks.23.attn.to_q'],
    ['Stable Diffusion 3', 'lora_unet_joint_blocks_0_context_block_attn_qkv'],
    ['Qwen-Image', 'transformer.transformer_blocks.0.img_mlp.net.0.proj', 'transformer.transformer_blocks.0.attn.to_q'],
    ['Qwen-Image', 'transformer_blocks.59.attn.to_q', 'transformer_blocks.0.attn.to_q'],
    ['Wan', 'diffusion_model.blocks.0.self_attn.q'],
    ['Wan', 'lora_unet_blocks_0_ffn_0'],
    ['Stable Diffusion XL', 'lora_unet_down_blocks_2_attentions_0_transformer_blocks_9_attn1_to_q'],
    ['Stable Diffusion XL', 'unet.input_blocks.7.1.transformer_blocks.3.attn1.to_q'],
    ['Stable Diffusion', 'lora_unet_mid_block_attentions_0_transformer_blocks_0_attn1_to_q'],
    ['Z-Image', 'lora_unet_layers_0_attention_qkv'],
    ['ERNIE-Image', 'diffusion_model.layers.0.self_attention.to_q'],
  ])('tell that a file is for %s', (family, ...keys) =>
    expect(names.ofOtherFamily(keys.map(canonicalName))?.family).toBe(family),
  );

  it('tell nothing of what may be for the model', () => {
    expect(names.ofOtherFamily(flux2.map(canonicalName))).toBeUndefined();
    expect(names.ofOtherFamily(['lora_unet_double_blocks_7_img_attn_qkv', 'something'])).toBeUndefined();
    expect(xl.ofOtherFamily(unet.map(canonicalName))).toBeUndefined();
    expect(ofTransformer(zImage).ofOtherFamily(flux2.map(canonicalName))?.family).toBe('FLUX.2');
    expect(ofTransformer(zImage).ofOtherFamily(zImage.map(canonicalName))).toBeUndefined();
    expect(ofTransformer(ernieImage).ofOtherFamily(zImage.map(canonicalName))?.family).toBe('Z-Image');
    expect(ofTransformer(ernieImage).ofOtherFamily(ernieImage.map(canonicalName))).toBeUndefined();
  });
});
