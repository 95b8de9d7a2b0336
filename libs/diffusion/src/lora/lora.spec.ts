import { mutations } from '../../../../test/support/mutations';
import { encodeSafetensors, type TensorToWrite } from '../../../../test/support/safetensors';
import { WeightsError, type WeightsErrorCode } from '../finetune/weights-error';
import { readSafetensorsHeader, SafetensorsError } from '../safetensors/safetensors-header';
import { BufferSource } from '../tensor/byte-source';
import { assertFiniteVectors, isTextualInversion, parseTextualInversion } from '../textual-inversion/textual-inversion';
import { assertFinite, type Lora, parseLora } from './lora';
import { readFactors } from './merge-lora';
import { parseLoraKey } from './lora-keys';

const sourceOf = (tensors: Record<string, TensorToWrite>) => new BufferSource(encodeSafetensors(tensors));
const parse = (tensors: Record<string, TensorToWrite>, metadata = new Map<string, string>()): Lora => {
  const source = sourceOf(tensors);
  const lora = parseLora({ ...readSafetensorsHeader(source), metadata }, source);
  assertFinite(lora, source);
  return lora;
};
const ones = (...shape: number[]): TensorToWrite => ({
  shape,
  values: new Array(shape.reduce((a, b) => a * b, 1)).fill(1),
});
const pair = (name: string, down: TensorToWrite = ones(2, 3), up: TensorToWrite = ones(4, 2)) => ({
  [`${name}.lora_down.weight`]: down,
  [`${name}.lora_up.weight`]: up,
});
const one = (lora: Lora) => [...lora.modules.values()][0];
const refusal = (parse: () => unknown): { code: WeightsErrorCode; message: string } => {
  try {
    parse();
  } catch (error) {
    if (error instanceof WeightsError) return error;
    throw error;
  }
  throw new Error('It was accepted.');
};

describe('parseLoraKey', () => {
  const attention = 'down_blocks_0_attentions_1_transformer_blocks_0_attn1';
  const dotted = 'down_blocks.0.attentions.1.transformer_blocks.0.attn1';
  it.each([
    [`unet.${dotted}.to_q.lora_A.weight`, 'unet', `${attention}_to_q`, 'down'],
    [`unet.${dotted}.to_q.lora_B.default.weight`, 'unet', `${attention}_to_q`, 'up'],
    [`base_model.model.unet.${dotted}.to_q.lora_A.weight`, 'unet', `${attention}_to_q`, 'down'],
    [`unet.${dotted}.to_out.0.lora.down.weight`, 'unet', `${attention}_to_out_0`, 'down'],
    [`unet.${dotted}.processor.to_out_lora.up.weight`, 'unet', `${attention}_to_out_0`, 'up'],
    [`${dotted}.processor.to_v_lora.up.weight`, 'unet', `${attention}_to_v`, 'up'],
    [`unet.${dotted}.to_q.alpha`, 'unet', `${attention}_to_q`, 'alpha'],
    [`lora_unet_${attention}_to_q.lora_down.weight`, 'unet', `${attention}_to_q`, 'down'],
    [`lora_unet_${attention}_to_q.alpha`, 'unet', `${attention}_to_q`, 'alpha'],
    ['lora_unet_mid_block_resnets_0_conv1.lora_mid.weight', 'unet', 'mid_block_resnets_0_conv1', 'mid'],
    ['lora_te_text_model_encoder_layers_0_mlp_fc1.lora_up.weight', 'text_encoder', 'encoder_layers_0_mlp_fc1', 'up'],
    ['lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_up.weight', 'text_encoder', 'encoder_layers_0_mlp_fc1', 'up'],
    [
      'text_encoder.text_model.encoder.layers.0.mlp.fc1.lora_A.weight',
      'text_encoder',
      'encoder_layers_0_mlp_fc1',
      'down',
    ],
    ['text_encoder.encoder.layers.0.mlp.fc1.lora_A.weight', 'text_encoder', 'encoder_layers_0_mlp_fc1', 'down'],
    [
      'text_encoder.text_model.encoder.layers.3.self_attn.to_out_lora.up.weight',
      'text_encoder',
      'encoder_layers_3_self_attn_out_proj',
      'up',
    ],
    [
      'text_encoder.text_model.encoder.layers.3.self_attn.q_proj.lora_linear_layer.down.weight',
      'text_encoder',
      'encoder_layers_3_self_attn_q_proj',
      'down',
    ],
  ])('reads %s', (key, part, path, role) => {
    expect(parseLoraKey(key)).toMatchObject({ part, path, role });
  });

  it.each<[string, WeightsErrorCode]>([
    ['lora_unet_mid_block_attentions_0_proj_in.hada_w1_a', 'WeightsKindUnsupported'],
    ['lora_unet_mid_block_attentions_0_proj_in.lokr_w2', 'WeightsKindUnsupported'],
    ['lora_unet_mid_block_attentions_0_proj_in.oft_blocks', 'WeightsKindUnsupported'],
    ['lora_unet_mid_block_attentions_0_proj_in.dora_scale', 'WeightsKindUnsupported'],
    ['unet.mid_block.attentions.0.proj_in.lora_magnitude_vector', 'WeightsKindUnsupported'],
    ['lora_unet_mid_block_attentions_0_proj_in.diff', 'WeightsKindUnsupported'],
    ['unet.mid_block.attentions.0.proj_in.lora_B.bias', 'WeightsKindUnsupported'],
    ['lora_te2_text_model_encoder_layers_0_mlp_fc1.lora_up.weight', 'WeightsDoNotFitModel'],
    ['text_encoder_2.text_model.encoder.layers.0.mlp.fc1.lora_A.weight', 'WeightsDoNotFitModel'],
    ['transformer.transformer_blocks.0.attn.to_q.lora_A.weight', 'WeightsDoNotFitModel'],
    ['model.diffusion_model.input_blocks.0.0.weight', 'WeightsMalformed'],
    ['something.lora_A.weight', 'WeightsMalformed'],
  ])('refuses %s', (key, code) => {
    const { code: found, message } = refusal(() => parseLoraKey(key));
    expect(found).toBe(code);
    expect(message).toContain(key);
  });
});

/** Adds in the same order as the runtime. */
class PlainSum {
  async add(weight: Float32Array, left: Float32Array, right: Float32Array, rank: number): Promise<Float32Array> {
    const columns = right.length / rank;
    return weight.map((value, place) => {
      const [row, column] = [Math.floor(place / columns), place % columns];
      for (let i = 0; i < rank; i++) value += left[row * rank + i] * right[i * columns + column];
      return value;
    });
  }
}

describe('parseLora', () => {
  it('reads factors, alpha and rank of a linear layer', () => {
    const alpha = { shape: [], values: [0.5], dtype: 'F16' as const };
    const lora = parse({ ...pair('lora_unet_mid_block_x'), 'lora_unet_mid_block_x.alpha': alpha });
    expect(lora.format).toBe('kohya');
    expect([...lora.modules.keys()]).toEqual(['unet.mid_block_x']);
    expect(one(lora)).toMatchObject({ shape: [4, 3], rank: 2, alpha: 0.5, conv: false });
  });

  it('uses the rank as alpha if there is none', () => {
    expect(one(parse(pair('unet.mid_block.x'))).alpha).toBe(2);
  });

  it("reads alpha from peft's configuration in the metadata", () => {
    const metadata = new Map([['lora_adapter_metadata', '{"unet.r": 2, "unet.lora_alpha": 8}']]);
    expect(one(parse(pair('unet.mid_block.x'), metadata)).alpha).toBe(8);
  });

  it('reads a convolution, and folds a middle factor into the lower one', async () => {
    const down = { shape: [2, 2, 1, 1], values: [1, 2, 3, 4] };
    const mid = { shape: [2, 2, 1, 2], values: [1, 10, 2, 20, 3, 30, 4, 40] };
    const tensors = {
      ...pair('lora_unet_mid_block_x', down, ones(4, 2, 1, 1)),
      'lora_unet_mid_block_x.lora_mid.weight': mid,
    };
    const module = one(parse(tensors));
    expect(module).toMatchObject({ shape: [4, 2, 1, 2], conv: true, rank: 2 });
    // [a, i, k]: mid[a, 0, k] * down[0, i] + mid[a, 1, k] * down[1, i]
    const { down: folded } = await readFactors(sourceOf(tensors), module, new PlainSum());
    expect([...folded]).toEqual([7, 70, 10, 100, 15, 150, 22, 220]);
  });

  it.each<[string, Record<string, TensorToWrite>, RegExp]>([
    ['without tensors', {}, /no tensors/],
    ['with one factor', { 'unet.mid_block.x.lora_A.weight': ones(2, 3) }, /no up factor/],
    ['whose ranks differ', pair('unet.mid_block.x', ones(2, 3), ones(4, 3)), /\[2, 3\] and \[4, 3\]/],
    ['whose factors differ in kind', pair('unet.mid_block.x', ones(2, 3, 3, 3), ones(4, 2)), /do not multiply/],
    [
      'whose upper factor has a kernel',
      pair('unet.mid_block.x', ones(2, 3, 3, 3), ones(4, 2, 3, 3)),
      /do not multiply/,
    ],
    ['of rank 0', pair('unet.mid_block.x', ones(0, 3), ones(4, 0)), /do not multiply/],
    ['of integers', pair('unet.mid_block.x', { ...ones(2, 3), dtype: 'I32' }), /type I32/],
    ['with a NaN', pair('unet.mid_block.x', { shape: [2, 3], values: [0, 0, 0, 0, 0, NaN] }), /not finite/],
    ['with two alphas', { ...pair('unet.mid_block.x'), 'unet.mid_block.x.alpha': ones(2) }, /not a single number/],
    [
      'with an alpha that is no number',
      { ...pair('unet.mid_block.x'), 'unet.mid_block.x.alpha': { shape: [], values: [NaN] } },
      /not finite/,
    ],
    [
      'with a layer twice',
      { ...pair('unet.mid_block.x_y'), 'unet.mid_block.x.y.lora_A.weight': ones(2, 3) },
      /"unet\.mid_block\.x_y.* and "unet\.mid_block\.x\.y/,
    ],
    [
      'with a middle factor for a linear layer',
      { ...pair('unet.mid_block.x'), 'unet.mid_block.x.lora_mid.weight': ones(2, 2, 3, 3) },
      /middle factor \[2, 2, 3, 3\]/,
    ],
  ])('rejects a file %s', (_, tensors, sentence) => {
    const { code, message } = refusal(() => parse(tensors));
    expect(code).toBe('WeightsMalformed');
    expect(message).toMatch(sentence);
  });

  it.each([
    ['not JSON', '{', 'WeightsMalformed'],
    ['null', 'null', 'accepted'],
    ['with an alpha that no number can hold', '{"unet.lora_alpha": 1e400}', 'WeightsMalformed'],
    ['longer than any', JSON.stringify('x'.repeat(300_000)), 'WeightsMalformed'],
    ['rank-stabilised', '{"unet.use_rslora": true}', 'WeightsKindUnsupported'],
    ['with an alpha of its own for a layer', '{"unet.alpha_pattern": {"to_q": 4}}', 'WeightsKindUnsupported'],
  ])('checks metadata that is %s', (_, text, outcome) => {
    const judge = () => parse(pair('unet.mid_block.x'), new Map([['lora_adapter_metadata', text]]));
    expect(outcome === 'accepted' ? one(judge()).alpha : refusal(judge).code).toBe(
      outcome === 'accepted' ? 2 : outcome,
    );
  });

  it('rejects any damaged file with a plain error', () => {
    const metadata = { lora_adapter_metadata: '{"unet.r":2,"unet.lora_alpha":8}' };
    const good = encodeSafetensors({ ...pair('unet.mid_block.x'), 'unet.mid_block.x.alpha': ones(1) }, metadata);
    const outcomes = { refused: 0, read: 0 };
    for (const bytes of mutations(good, 3000)) {
      try {
        const source = new BufferSource(bytes);
        const header = readSafetensorsHeader(source);
        if (isTextualInversion(header.tensors)) parseTextualInversion(header.tensors);
        else parseLora(header, source);
        outcomes.read++;
      } catch (error) {
        if (!(error instanceof SafetensorsError)) expect(error).toBeInstanceOf(WeightsError);
        outcomes.refused++;
      }
    }
    expect(outcomes.refused).toBeGreaterThan(2000);
    expect(outcomes.read).toBeGreaterThan(10);
  });
});

describe('parseTextualInversion', () => {
  it.each([
    ['<cat-toy>', ones(3), { format: 'diffusers', token: '<cat-toy>', count: 1, width: 3 }],
    ['<cat-toy>', ones(2, 3), { format: 'diffusers', token: '<cat-toy>', count: 2, width: 3 }],
    ['emb_params', ones(2, 3), { format: 'a1111', token: undefined, count: 2, width: 3 }],
  ])('reads %s %j', (key, tensor, expected) => {
    const { tensors } = readSafetensorsHeader(sourceOf({ [key]: tensor }));
    expect(isTextualInversion(tensors)).toBe(true);
    expect(parseTextualInversion(tensors)).toMatchObject(expected);
  });

  it.each<[string, Record<string, TensorToWrite>, WeightsErrorCode]>([
    ['of two text encoders', { clip_l: ones(1, 3), clip_g: ones(1, 5) }, 'WeightsDoNotFitModel'],
    ['without rows', { emb_params: ones(0, 3) }, 'WeightsMalformed'],
    ['of integers', { emb_params: { ...ones(1, 3), dtype: 'I32' } }, 'WeightsMalformed'],
    ['with an infinity', { emb_params: { shape: [2], values: [0, Infinity] } }, 'WeightsMalformed'],
  ])('rejects embeddings %s', (_, tensors, code) => {
    const source = sourceOf(tensors);
    const header = readSafetensorsHeader(source);
    expect(isTextualInversion(header.tensors)).toBe(true);
    expect(refusal(() => assertFiniteVectors(parseTextualInversion(header.tensors), source)).code).toBe(code);
  });

  it('does not mistake a single weight of a checkpoint for an embedding', () => {
    const { tensors } = readSafetensorsHeader(sourceOf({ 'unet.conv_in.weight': ones(2, 3) }));
    expect(isTextualInversion(tensors)).toBe(false);
  });
});
