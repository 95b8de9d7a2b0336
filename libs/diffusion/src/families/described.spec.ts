import { modelTensors } from '../../../../test/support/model-tensors';
import { describedFamilyOf } from './described';

const tensorsOf = (name: string) => modelTensors({ transformer: { [name]: [8, 8] } });
const flux2 = describedFamilyOf(tensorsOf('double_stream_modulation_img.linear.weight'))!.described;
const zImage = describedFamilyOf(tensorsOf('cap_pad_token'))!.described;

it.each([
  [flux2, 'flux-2-klein-4b.safetensors', true],
  [flux2, 'flux-2-klein-base-4b.safetensors', false],
  [flux2, 'someones-merge-Q4_K_M.gguf', true],
  [zImage, 'z_image_turbo_bf16.safetensors', true],
  [zImage, 'z_image_bf16.safetensors', false],
  [zImage, 'Z-Image-Q8_0.gguf', false],
  [zImage, 'z-image-turbo-q4_k_m.gguf', true],
  [zImage, 'someones-merge.safetensors', true],
  [zImage, 'someones-merge-Base.safetensors', false],
])('The name of a file says whether its model is distilled: %#', ({ isDistilled }, name, expected) =>
  expect(isDistilled(name)).toBe(expected),
);

it('A model whose weights no family with files of parts knows is described by none', () => {
  expect(describedFamilyOf(modelTensors({ unet: { 'conv_in.weight': [8, 4, 3, 3] } }))).toBeUndefined();
});
