import { modelTensors } from '../../../../test/support/model-tensors';
import type { NamedTensors } from './named-tensor';
import { hasTransformer, partsOfFile } from './parts-of-file';

const file = (shapes: Record<string, number[]>): NamedTensors => modelTensors({ file: shapes }).get('file')!;
const shapesIn = (tensors: NamedTensors) => Object.fromEntries([...tensors].map(([name, { shape }]) => [name, shape]));

describe(partsOfFile, () => {
  it('finds rows of what is fused, and what has its halves in the other order', () => {
    const flux2 = partsOfFile(
      file({
        'double_stream_modulation_img.lin.weight': [12, 2],
        'double_blocks.3.img_attn.qkv.weight': [6, 2],
        'double_blocks.3.img_attn.norm.query_norm.scale': [2],
        'final_layer.adaLN_modulation.1.weight': [4, 2],
      }),
    ).get('transformer')!;
    expect(shapesIn(flux2)).toEqual({
      'double_stream_modulation_img.linear.weight': [12, 2],
      'transformer_blocks.3.attn.to_q.weight': [2, 2],
      'transformer_blocks.3.attn.to_k.weight': [2, 2],
      'transformer_blocks.3.attn.to_v.weight': [2, 2],
      'transformer_blocks.3.attn.norm_q.weight': [2],
      'norm_out.linear.weight': [4, 2],
    });
    expect(flux2.get('transformer_blocks.3.attn.to_v.weight')!.offset).toBe(4 * 4 * 2);
    expect([...flux2.values()].filter(({ isSwapped }) => isSwapped).map(({ name }) => name)).toEqual([
      'norm_out.linear.weight',
    ]);
  });

  it('gives a single token the axis that programs of GGUF leave out, and drops what no program reads', () => {
    const zImage = file({
      cap_pad_token: [8],
      x_pad_token: [1, 8],
      'norm_final.weight': [8],
      'x_embedder.weight': [8, 4],
    });
    expect(hasTransformer(zImage)).toBe(true);
    expect(shapesIn(partsOfFile(zImage).get('transformer')!)).toEqual({
      cap_pad_token: [1, 8],
      x_pad_token: [1, 8],
      'all_x_embedder.2-1.weight': [8, 4],
    });
  });

  it.each([
    ['model.layers.0.self_attn.q_norm.weight', 'model.layers.0.mlp.up_proj.weight'],
    ['layers.0.self_attn.q_norm.weight', 'layers.0.mlp.up_proj.weight'],
    ['blk.0.attn_q_norm.weight', 'blk.0.ffn_up.weight'],
  ])('reads Qwen3 by any of its names: %s', (norm, up) => {
    const encoder = partsOfFile(file({ [norm]: [4], [up]: [8, 4] })).get('text_encoder')!;
    expect([...encoder.keys()]).toEqual([
      'model.layers.0.self_attn.q_norm.weight',
      'model.layers.0.mlp.up_proj.weight',
    ]);
  });

  it('has nothing of checkpoints of other models', () => {
    const checkpoint = file({
      'model.diffusion_model.input_blocks.0.0.weight': [4, 4],
      'cond_stage_model.transformer.text_model.final_layer_norm.weight': [4],
    });
    expect(hasTransformer(checkpoint)).toBe(false);
    expect([...partsOfFile(checkpoint).keys()]).toEqual([]);
    expect(hasTransformer(file({ 'double_blocks.0.img_attn.qkv.weight': [6, 2] }))).toBe(false);
  });

  it('refuses three matrices in rows that are no multiple of three', () => {
    const shapes = {
      'double_stream_modulation_img.lin.weight': [12, 2],
      'double_blocks.0.txt_attn.qkv.weight': [8, 2],
    };
    expect(() => partsOfFile(file(shapes))).toThrow('qkv.weight of 8 rows cannot be parted');
  });

  it('refuses a layer that is there twice, by two names', () => {
    const shapes = {
      'double_stream_modulation_img.lin.weight': [12, 2],
      'double_blocks.0.txt_attn.qkv.weight': [9, 2],
      'transformer_blocks.0.attn.add_q_proj.weight': [3, 2],
    };
    expect(() => partsOfFile(file(shapes))).toThrow('Two tensors are transformer_blocks.0.attn.add_q_proj.weight;');
  });
});
