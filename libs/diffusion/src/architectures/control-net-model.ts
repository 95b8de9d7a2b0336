/** diffusers' `models/controlnets/controlnet.py`: what a picture of edges, depths or poses adds to a U-Net. */
import type { Value } from '../graph/graph';
import { conv, silu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { encodeSample, type UNet2DConditionConfig } from './unet-2d-condition-model';

/**
 * Inputs: those of the U-Net, `controlnet_cond` [batch, 3, height * 8, width * 8] from 0 to 1, and `conditioning_scale`
 * [batch]. Outputs: `down_block_additional_residuals.<i>` and `mid_block_additional_residual`.
 */
export function controlNetModel(options: ModuleOptions, config: UNet2DConditionConfig): BuiltGraph {
  const m = Module.of(options);
  const { x, skips } = encodeSample(m, config, (sample) => m.add(sample, conditioningEmbedding(m)));
  const scale = m.reshape(m.input('conditioning_scale', ['batch']), 0, 1, 1, 1);
  const give = (name: string, value: Value, layer: string): void =>
    m.output(name, m.mul(conv(m, value, layer), scale), [
      'batch',
      m.shape(`${layer}.weight`)[0],
      `${name}:2`,
      `${name}:3`,
    ]);
  for (const [i, skip] of skips.entries())
    give(`down_block_additional_residuals.${i}`, skip, `controlnet_down_blocks.${i}`);
  give('mid_block_additional_residual', x, 'controlnet_mid_block');
  return m.finish();
}

/** Every second convolution halves the size, until it is that of latents. */
function conditioningEmbedding(root: Module): Value {
  const m = root.at('controlnet_cond_embedding');
  const condition = root.input('controlnet_cond', ['batch', m.shape('conv_in.weight', 4)[1], 'rows', 'columns']);
  let x = silu(m, conv(m, condition, 'conv_in'));
  for (const i of m.list('blocks').keys()) x = silu(m, conv(m, x, `blocks.${i}`, { stride: 1 + (i % 2) }));
  return conv(m, x, 'conv_out');
}
