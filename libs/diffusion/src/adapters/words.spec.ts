import { modelTensors } from '../../../../test/support/model-tensors';
import { encodeSafetensors, type TensorToWrite } from '../../../../test/support/safetensors';
import { BufferSource } from '../tensor/byte-source';
import { adapterOf } from './adapter-file';
import { fitAdapter } from './fit-adapter';
import { WeightsError } from './weights-error';

const ofText = (width: number) => ({
  'text_model.embeddings.token_embedding.weight': [50, width],
  'text_model.embeddings.position_embedding.weight': [7, width],
});
const unet = { 'conv_in.weight': [6, 4] };
const sd1 = modelTensors({ unet, text_encoder: ofText(3) });
const xl = modelTensors({ unet, text_encoder: ofText(3), text_encoder_2: ofText(5) });

const flux2 = modelTensors({
  transformer: { 'x_embedder.weight': [6, 4] },
  text_encoder: { 'model.embed_tokens.weight': [50, 3] },
});

const ones = (...shape: number[]): TensorToWrite => ({
  shape,
  values: new Array<number>(shape.reduce((a, b) => a * b, 1)).fill(1),
});
const fit = (tensors: Record<string, TensorToWrite>, model = sd1) =>
  fitAdapter(adapterOf(new BufferSource(encodeSafetensors(tensors)), 'none'), model);
const wordsOf = ({ kind, words }: ReturnType<typeof fit>) => ({
  kind,
  words: words.map(({ word, count, vectors }) => [word, count, ...vectors.keys()]),
});
const kind = 'textual_inversion';

describe('A textual inversion', () => {
  it.each([
    ['emb_params', ones(2, 3), undefined, 2],
    ['emp_params', ones(2, 3), undefined, 2],
    ['string_to_param.*', ones(2, 3), undefined, 2],
    ['clip_l', ones(2, 3), undefined, 2],
    ['<cat-toy>', ones(3), '<cat-toy>', 1],
    ['my.cat', ones(1, 3), 'my.cat', 1],
  ])('of %s is read', (key, tensor, word, count) =>
    expect(wordsOf(fit({ [key]: tensor }))).toEqual({ kind, words: [[word, count, 'text_encoder']] }),
  );

  it.each([
    ['clip_l', 'clip_g'],
    ['text_encoders_0', 'text_encoders_1'],
  ])('of XL has %s and %s', (first, second) =>
    expect(wordsOf(fit({ [first]: ones(2, 3), [second]: ones(2, 5) }, xl))).toEqual({
      kind,
      words: [[undefined, 2, 'text_encoder', 'text_encoder_2']],
    }),
  );

  it('may be part of a LoRA, under a word of its own', () => {
    const lora = { 'lora_unet_conv_in.lora_down.weight': ones(1, 4), 'lora_unet_conv_in.lora_up.weight': ones(6, 1) };
    const fitted = fit({ ...lora, 'bundle_emb.<cat>.emb_params': ones(2, 3), 'bundle_emb.dog.clip_l': ones(3) });
    expect(fitted.layers.get('unet')!.size).toBe(1);
    expect(wordsOf(fitted)).toEqual({
      kind: 'lora',
      words: [
        ['<cat>', 2, 'text_encoder'],
        ['dog', 1, 'text_encoder'],
      ],
    });
  });

  it.each<[string, Record<string, TensorToWrite>, typeof sd1, string, RegExp]>([
    [
      'of two words',
      { '<cat>': ones(3), '<dog>': ones(3) },
      sd1,
      'WeightsKindUnsupported',
      /several words, "<cat>", "<dog>"/,
    ],
    ['of an output', { 'bundle_emb.cat.clip_l_out': ones(1, 3) }, sd1, 'WeightsKindUnsupported', /output/],
    ['of XL', { clip_l: ones(1, 3), clip_g: ones(1, 5) }, sd1, 'WeightsDoNotFitModel', /several text encoders/],
    [
      'of a text encoder that takes none',
      { '<cat>': ones(3) },
      flux2,
      'WeightsDoNotFitModel',
      /text_encoder takes none/,
    ],
    ['of one text encoder', { '<cat>': ones(3) }, xl, 'WeightsDoNotFitModel', /a model with one text encoder/],
    ['of another width', { emb_params: ones(1, 4) }, sd1, 'WeightsDoNotFitModel', /\[1, 4\]; .* are \[50, 3\]/],
    ['of too many vectors', { emb_params: ones(6, 3) }, sd1, 'WeightsDoNotFitModel', /room for 5/],
    ['of two lengths', { clip_l: ones(1, 3), clip_g: ones(2, 5) }, xl, 'WeightsMalformed', /differ/],
    ['without rows', { emb_params: ones(0, 3) }, sd1, 'WeightsMalformed', /empty/],
    ['of integers', { emb_params: { ...ones(1, 3), dtype: 'I32' } }, sd1, 'WeightsMalformed', /type I32/],
  ])('is refused %s', (_, tensors, model, code, sentence) => {
    const judge = () => fit(tensors, model);
    expect(judge).toThrow(WeightsError);
    expect(judge).toThrow(expect.objectContaining({ code }) as Error);
    expect(judge).toThrow(sentence);
  });

  it('is not what a single weight of a checkpoint is', () =>
    expect(() => fit({ 'unet.conv_in.weight': ones(2, 3) })).toThrow(/is a U-Net/));
});
