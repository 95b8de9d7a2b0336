/** diffusers' `models/unets/unet_2d_condition.py`: what Stable Diffusion 1.x, 2.x and XL predict noise with. */
import type { Value } from '../graph/graph';
import { conv, groupNorm, linear, silu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { type NamedTensors, WeightsFileError } from '../weights/named-tensor';
import { UnsupportedConfigError } from '../errors';
import { assertKnown, assertStated, type ConfigJson, counts, epsilons, numberOf } from './config';
import { downsample2D, resnetBlock2D, timestepEmbedding, transformer2DModel, upsample2D } from './blocks';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface UNet2DConditionConfig {
  /** Heads of attention in all levels, or in each; `config.json` also calls them `attention_head_dim`. */
  numAttentionHeads: number | readonly number[];
  normNumGroups: number;
  normEps: number;
  flipSinToCos: boolean;
  freqShift: number;
  /** Width of the embedding of each of XL's `time_ids`. */
  additionTimeEmbedDim: number;
  /** All of it: of what the weights' shapes tell it says the same. */
  stated?: ConfigJson;
}

/** Values of Stable Diffusion, where a `config.json` does not say otherwise. */
export const unetDefaults: UNet2DConditionConfig = {
  numAttentionHeads: 8,
  normNumGroups: 32,
  normEps: 1e-5,
  flipSinToCos: true,
  freqShift: 0,
  additionTimeEmbedDim: 256,
};

/** The values of a U-Net's or a ControlNet's `config.json`. @throws UnsupportedConfigError */
export function unetConfigOf(json: ConfigJson): UNet2DConditionConfig {
  assertKnown(json, {
    down_block_types: ['DownBlock2D', 'CrossAttnDownBlock2D'],
    up_block_types: ['UpBlock2D', 'CrossAttnUpBlock2D'],
    mid_block_type: ['UNetMidBlock2DCrossAttn'],
    act_fn: ['silu', 'swish'],
    addition_embed_type: ['text_time'],
    time_embedding_type: ['positional'],
    attention_type: ['default'],
    resnet_out_scale_factor: [1],
    mid_block_scale_factor: [1],
    downsample_padding: [1],
    ...Object.fromEntries(unknownFeatures.map((key) => [key, [false]])),
  });
  const heads = json.num_attention_heads ?? json.attention_head_dim ?? unetDefaults.numAttentionHeads;
  if (![heads].flat().every((count) => Number.isInteger(count) && (count as number) > 0))
    throw new UnsupportedConfigError(`"attention_head_dim" is ${JSON.stringify(heads)}; accepted is a whole number.`);
  return {
    numAttentionHeads: heads as number | number[],
    normNumGroups: numberOf(json, 'norm_num_groups', unetDefaults.normNumGroups, counts),
    normEps: numberOf(json, 'norm_eps', unetDefaults.normEps, epsilons),
    flipSinToCos: json.flip_sin_to_cos !== false,
    freqShift: numberOf(json, 'freq_shift', 0, { least: 0, most: 1 }),
    additionTimeEmbedDim: numberOf(json, 'addition_time_embed_dim', unetDefaults.additionTimeEmbedDim, counts),
    stated: json,
  };
}

/** The heads of each level if all have so many channels, as in Stable Diffusion 2.x and XL. */
export function headsOfWidth(width: number, tensors: NamedTensors): number[] {
  const heads: number[] = [];
  for (let tensor; (tensor = tensors.get(`down_blocks.${heads.length}.resnets.0.conv1.weight`));)
    heads.push(tensor.shape[0] / width);
  return heads;
}

/** Settings that other models than Stable Diffusion have on. */
const unknownFeatures = [
  ...['center_input_sample', 'class_embed_type', 'class_embeddings_concat', 'cross_attention_norm'],
  ...['dual_cross_attention', 'encoder_hid_dim_type', 'global_pool_conditions', 'mid_block_only_cross_attention'],
  ...['only_cross_attention', 'resnet_skip_time_act', 'time_embedding_act_fn', 'timestep_post_act'],
];

/** The picture on its way down, and what the way up takes from it. */
interface Encoded {
  x: Value;
  /** The time embedding after its activation. */
  emb: Value;
  context: Value;
  skips: Value[];
}

/**
 * Inputs: `sample` [batch, channels, height, width], `timestep` [batch], `encoder_hidden_states` [batch, tokens,
 * width]; of a distilled model `timestep_cond` [batch, width]; of XL `text_embeds` [batch, width] and `time_ids`
 * [batch, 6].
 * Output: `out_sample`.
 * @param hasResiduals whether it takes those of a ControlNet, which may be empty: `down_block_additional_residuals.<i>`
 * and `mid_block_additional_residual`
 */
export function unet2DConditionModel(
  options: ModuleOptions,
  config: UNet2DConditionConfig,
  hasResiduals = false,
): BuiltGraph {
  const m = Module.of(options);
  const { normNumGroups: groups, normEps: epsilon } = config;
  const { x: encoded, emb, context, skips } = encodeSample(m, config);
  const residuals = skips.map((_, i) => hasResiduals && residual(m, `down_block_additional_residuals.${i}`));
  const middle = hasResiduals && residual(m, 'mid_block_additional_residual');
  let x = middle
    ? m.whenFilled(
        middle,
        () => m.add(encoded, middle),
        () => m.op('Identity', [encoded]),
      )
    : encoded;
  for (const [i, block] of m.list('up_blocks').entries()) {
    const { resnets, attentions } = layersOf(block);
    for (const [j, resnet] of resnets.entries()) {
      const [skip, added] = [skips.pop()!, residuals.pop()];
      const inner = x;
      const plain = (): Value => block.concat([inner, skip], 1);
      x = added ? block.whenFilled(added, () => block.concat([inner, block.add(skip, added)], 1), plain) : plain();
      x = resnetBlock2D(resnet, x, { groups, epsilon }, emb);
      if (attentions[j]) x = transformer2DModel(attentions[j], x, context, headsOf(config, -1 - i), groups);
    }
    if (block.has('upsamplers')) x = upsample2D(block.at('upsamplers', 0), x, skips.at(-1));
  }
  x = conv(m, silu(m, groupNorm(m, x, 'conv_norm_out', groups, epsilon)), 'conv_out');
  m.output('out_sample', x, ['batch', m.shape('conv_out.weight')[0], 'height', 'width']);
  return m.finish();
}

/** All layers of a level have attention, or none. @throws WeightsFileError */
function layersOf(block: Module): Record<'resnets' | 'attentions', Module[]> {
  const [resnets, attentions] = [block.list('resnets'), block.list('attentions')];
  if (attentions.length > 0 && attentions.length !== resnets.length)
    throw new WeightsFileError(`${block.path} has ${resnets.length} resnets, and ${attentions.length} attentions.`);
  return { resnets, attentions };
}

/** @throws UnsupportedConfigError for a configuration of another number of levels, or of other ones */
function assertLevels(
  { numAttentionHeads: heads, stated = {} }: UNet2DConditionConfig,
  blocks: readonly Module[],
): void {
  const { block_out_channels: widths, layers_per_block: layers } = stated;
  for (const [key, list] of Object.entries({ attention_head_dim: heads, block_out_channels: widths }))
    if (Array.isArray(list) && list.length !== blocks.length)
      throw new UnsupportedConfigError(`"${key}" is for ${list.length} levels, and the weights have ${blocks.length}.`);
  for (const [i, block] of blocks.entries())
    assertStated(
      { layers_per_block: Array.isArray(layers) ? (layers as unknown[])[i] : layers },
      { layers_per_block: block.list('resnets').length },
    );
}

const residual = (m: Module, name: string): Value =>
  m.input(
    name,
    [0, 1, 2, 3].map((axis) => `${name}:${axis}`),
  );

/** Heads of a level; the last one is -1. */
function headsOf({ numAttentionHeads: heads }: UNet2DConditionConfig, level: number): number {
  return typeof heads === 'number' ? heads : heads.at(level)!;
}

/**
 * The way down and the middle, which a ControlNet has too. `hint` is what that adds to the first convolution's result.
 */
export function encodeSample(m: Module, config: UNet2DConditionConfig, hint?: (x: Value) => Value): Encoded {
  const { normNumGroups: groups, normEps: epsilon } = config;
  const sample = m.input('sample', ['batch', m.shape('conv_in.weight', 4)[1], 'height', 'width']);
  const emb = timeEmbedding(m, config);
  const context = m.input('encoder_hidden_states', ['batch', 'tokens', contextWidth(m)]);
  let x = conv(m, sample, 'conv_in');
  if (hint) x = hint(x);
  const skips = [x];
  const blocks = m.list('down_blocks');
  assertLevels(config, blocks);
  for (const [i, block] of blocks.entries()) {
    const { resnets, attentions } = layersOf(block);
    for (const [j, resnet] of resnets.entries()) {
      x = resnetBlock2D(resnet, x, { groups, epsilon }, emb);
      if (attentions[j]) x = transformer2DModel(attentions[j], x, context, headsOf(config, i), groups);
      skips.push(x);
    }
    if (block.has('downsamplers')) skips.push((x = downsample2D(block.at('downsamplers', 0), x)));
  }
  const middle = m.at('mid_block');
  const attentions = middle.list('attentions');
  for (const [i, resnet] of middle.list('resnets').entries()) {
    x = resnetBlock2D(resnet, x, { groups, epsilon }, emb);
    if (attentions[i]) x = transformer2DModel(attentions[i], x, context, headsOf(config, -1), groups);
  }
  return { x, emb, context, skips };
}

function contextWidth(m: Module): number | string {
  const key = m.weightNames().find((name) => name.endsWith('attn2.to_k.weight'));
  return key === undefined ? 'width' : m.shape(key)[1];
}

/** The embedding of timestep, guidance, and XL's sizes and pooled text, after its activation: [batch, 1, width]. */
function timeEmbedding(m: Module, { flipSinToCos, freqShift, additionTimeEmbedDim }: UNet2DConditionConfig): Value {
  const embed = (t: Value, width: number): Value => timestepEmbedding(m, t, width, flipSinToCos, freqShift);
  const mlp = (part: Module, x: Value): Value =>
    linear(part, silu(part, linear(part, x, 'linear_1', true)), 'linear_2', true);
  const part = m.at('time_embedding');
  const timestep = m.reshape(m.input('timestep', ['batch'], 'float32', true), 0, 1);
  let t = embed(timestep, part.shape('linear_1.weight')[1]);
  if (part.has('cond_proj')) {
    const condition = m.input('timestep_cond', ['batch', part.shape('cond_proj.weight')[1]]);
    t = m.add(t, linear(part, m.reshape(condition, 0, 1, -1), 'cond_proj', true));
  }
  let emb = mlp(part, t);
  if (m.has('add_embedding')) {
    const added = m.at('add_embedding');
    const pooledWidth = added.shape('linear_1.weight')[1] - 6 * additionTimeEmbedDim;
    if (pooledWidth < 1 || additionTimeEmbedDim % 2 !== 0)
      throw new UnsupportedConfigError(
        `"addition_time_embed_dim" is ${additionTimeEmbedDim}, which the weights are not for.`,
      );
    const pooled = m.reshape(m.input('text_embeds', ['batch', pooledWidth]), 0, 1, -1);
    const sizes = embed(m.input('time_ids', ['batch', 6], 'float32', true), additionTimeEmbedDim);
    emb = m.add(emb, mlp(added, m.concat([pooled, sizes], 2)));
  }
  return silu(m, emb);
}
