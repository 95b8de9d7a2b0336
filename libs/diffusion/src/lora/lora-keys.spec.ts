import { diffusersPath } from './lora-keys';

describe(diffusersPath, () => {
  it.each([
    ['input_blocks_0_0', 'conv_in'],
    ['input_blocks_1_0_in_layers_2', 'down_blocks_0_resnets_0_conv1'],
    ['input_blocks_1_1_transformer_blocks_0_attn1_to_q', 'down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q'],
    ['input_blocks_2_1_proj_in', 'down_blocks_0_attentions_1_proj_in'],
    ['input_blocks_3_0_op', 'down_blocks_0_downsamplers_0_conv'],
    ['input_blocks_4_0_skip_connection', 'down_blocks_1_resnets_0_conv_shortcut'],
    ['input_blocks_11_0_out_layers_3', 'down_blocks_3_resnets_1_conv2'],
    ['middle_block_0_emb_layers_1', 'mid_block_resnets_0_time_emb_proj'],
    ['middle_block_1_transformer_blocks_0_ff_net_0_proj', 'mid_block_attentions_0_transformer_blocks_0_ff_net_0_proj'],
    ['middle_block_2_in_layers_2', 'mid_block_resnets_1_conv1'],
    ['output_blocks_0_0_in_layers_2', 'up_blocks_0_resnets_0_conv1'],
    ['output_blocks_2_1_conv', 'up_blocks_0_upsamplers_0_conv'],
    ['output_blocks_5_2_conv', 'up_blocks_1_upsamplers_0_conv'],
    [
      'output_blocks_11_1_transformer_blocks_0_attn2_to_out_0',
      'up_blocks_3_attentions_2_transformer_blocks_0_attn2_to_out_0',
    ],
    ['time_embed_2', 'time_embedding_linear_2'],
    ['out_2', 'conv_out'],
    ['down_blocks_0_attentions_0_proj_in', 'down_blocks_0_attentions_0_proj_in'],
  ])('reads %s', (ldm, path) => {
    expect(diffusersPath(ldm)).toBe(path);
  });
});
