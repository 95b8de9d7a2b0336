import { isAdapterKey, parseKey, refuseOtherFiles } from './keys';
import { WeightsError, type WeightsErrorCode } from './weights-error';

const refusal = (judge: () => unknown): { code: WeightsErrorCode; message: string } => {
  try {
    judge();
  } catch (error) {
    if (error instanceof WeightsError) return error;
    throw error;
  }
  throw new Error('It was accepted.');
};

describe(parseKey.name, () => {
  it.each([
    ['lora_unet_mid_x.lora_down.weight', 'lora_unet_mid_x', 'down'],
    ['lora_unet_mid_x.lora_up.weight', 'lora_unet_mid_x', 'up'],
    ['lora_unet_mid_x.lora_mid.weight', 'lora_unet_mid_x', 'mid'],
    ['unet.mid.to_q.lora_A.weight', 'unet.mid.to_q', 'down'],
    ['unet.mid.to_q.lora_B.default.weight', 'unet.mid.to_q', 'up'],
    ['unet.mid.to_q.lora_B.default_0.weight', 'unet.mid.to_q', 'up'],
    ['unet.mid.to_q.lora.up.weight', 'unet.mid.to_q', 'up'],
    ['unet.mid.to_q.up.weight', 'unet.mid.to_q', 'up'],
    ['unet.mid.to_q.down', 'unet.mid.to_q', 'down'],
    ['mid.processor.to_out_lora.up.weight', 'mid.processor.to_out', 'up'],
    ['text_encoder.q_proj.lora_linear_layer.down.weight', 'text_encoder.q_proj', 'down'],
    ['unet.mid.to_q.alpha', 'unet.mid.to_q', 'alpha'],
    ['unet.mid.to_q.lora.alpha', 'unet.mid.to_q', 'alpha'],
    ['unet.mid.to_q.lora.down.weight.alpha', 'unet.mid.to_q', 'alpha'],
    ['lora_unet_mid.hada_w1_a', 'lora_unet_mid', 'hada_w1_a'],
    ['lora_unet_mid.hada_t2', 'lora_unet_mid', 'hada_t2'],
    ['lora_unet_mid.lokr_w1', 'lora_unet_mid', 'lokr_w1'],
    ['lora_unet_mid.lokr_w2_b', 'lora_unet_mid', 'lokr_w2_b'],
    ['lora_unet_mid.dora_scale', 'lora_unet_mid', 'dora_scale'],
    ['unet.mid.lora_magnitude_vector', 'unet.mid', 'lora_magnitude_vector'],
    ['unet.mid.lora_magnitude_vector.default.weight', 'unet.mid', 'lora_magnitude_vector'],
    ['lora_unet_mid.diff', 'lora_unet_mid', 'diff'],
    ['lora_unet_mid.diff_b', 'lora_unet_mid', 'diff_b'],
    ['lora_unet_norm.w_norm', 'lora_unet_norm', 'diff'],
    ['lora_unet_norm.b_norm', 'lora_unet_norm', 'diff_b'],
  ])('reads %s', (key, layer, factor) => {
    expect(parseKey(key)).toEqual({ layer, factor });
  });

  it.each([
    ['lora_unet_mid.on_input', 'IA3'],
    ['unet.mid.to_k.ia3_l', 'IA3'],
    ['lora_unet_mid.oft_blocks', 'OFT'],
    ['unet.mid.to_q.oft_R.default.weight', 'OFT'],
    ['lora_unet_mid.b2.weight', 'GLoRA'],
    ['lora_unet_mid.lambda_layer', 'T-LoRA'],
    ['unet.mid.vera_lambda_b', 'VeRA'],
    ['text_encoder.embeddings.lora_embedding_A', 'embedding'],
    ['unet.mid.lora_B.bias', 'biases'],
  ])('knows %s as a key of another kind', (key, kind) => {
    const { code, message } = refusal(() => refuseOtherFiles(['unet.conv_in.lora_A.weight', key]));
    expect(code).toBe('WeightsKindUnsupported');
    expect(message).toMatch(new RegExp(`The adapter is an? (?:\\w+ of an? |LoRA with )?${kind}`));
    expect(message).toContain(key);
    expect(isAdapterKey(key)).toBe(true);
  });

  it.each(['unet.conv_in.weight', 'model_ema.decay', '<cat>', 'decoder.up.0.block.0.conv1.weight'])(
    'knows that %s is no key of an adapter',
    (key) => expect(parseKey(key)).toBeUndefined(),
  );
});

describe(refuseOtherFiles.name, () => {
  it.each([
    ['a ControlNet', 'control_model.input_blocks.0.0.weight'],
    ['a ControlNet', 'controlnet_cond_embedding.conv_in.weight'],
    ['a ControlNet', 'lora_controlnet'],
    ['a ControlNet', 'lllite_unet_input_blocks_1_1_attn1_to_q.down.0.weight'],
    ['an IP-Adapter', 'image_proj.proj.weight'],
    ['a T2I-Adapter', 'adapter.body.0.resnets.0.block1.weight'],
    ['a T2I-Adapter', 'body.0.block1.weight'],
    ['a motion module', 'down_blocks.0.motion_modules.0.temporal_transformer.proj_in.weight'],
    ['a checkpoint', 'model.diffusion_model.input_blocks.0.0.weight'],
    ['a U-Net', 'down_blocks.0.resnets.0.conv1.weight'],
    ['a U-Net', 'conv_in.bias'],
    ['an autoencoder', 'decoder.conv_in.weight'],
    ['a text encoder', 'text_model.encoder.layers.0.mlp.fc1.weight'],
  ])('calls a file %s for its key %s', (kind, key) => {
    const lora = 'unet.down_blocks.0.resnets.0.conv1.lora_A.weight';
    const { code, message } = refusal(() => refuseOtherFiles([lora, key]));
    expect(code).toBe('WeightsKindUnsupported');
    expect(message).toContain(`The file is ${kind}`);
  });

  it('names an IA3 even where its weights come first', () => {
    expect(refusal(() => refuseOtherFiles(['lora_unet_a.weight', 'lora_unet_a.on_input'])).message).toContain('IA3');
  });

  it('names a key that is none of anything', () => {
    const { code, message } = refusal(() => refuseOtherFiles(['something.else']));
    expect([code, message]).toEqual(['WeightsMalformed', 'The key "something.else" is none that a LoRA has.']);
  });
});
