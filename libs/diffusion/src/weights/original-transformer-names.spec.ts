import { diffusersLayer, originalLayer } from './original-transformer-names';

/** As diffusers' `convert_flux2_transformer_checkpoint_to_diffusers` and `convert_z_image_…` have them. */
describe(diffusersLayer.name, () => {
  it.each<[original: string, ...paths: string[]]>([
    ['img_in', 'x_embedder'],
    ['txt_in', 'context_embedder'],
    ['time_in.in_layer', 'time_guidance_embed.timestep_embedder.linear_1'],
    ['guidance_in.out_layer', 'time_guidance_embed.guidance_embedder.linear_2'],
    ['double_stream_modulation_txt.lin', 'double_stream_modulation_txt.linear'],
    ['single_stream_modulation.lin', 'single_stream_modulation.linear'],
    ['final_layer.linear', 'proj_out'],
    ...['img', 'txt'].flatMap((side): [string, ...string[]][] => {
      const [from, to] = [`double_blocks.12.${side}`, 'transformer_blocks.12'];
      const isPicture = side === 'img';
      const qkv = isPicture ? ['to_q', 'to_k', 'to_v'] : ['add_q_proj', 'add_k_proj', 'add_v_proj'];
      const ff = `${to}.${isPicture ? 'ff' : 'ff_context'}`;
      return [
        [`${from}_attn.qkv`, ...qkv.map((name) => `${to}.attn.${name}`)],
        [`${from}_attn.proj`, `${to}.attn.${isPicture ? 'to_out.0' : 'to_add_out'}`],
        [`${from}_attn.norm.query_norm`, `${to}.attn.${isPicture ? 'norm_q' : 'norm_added_q'}`],
        [`${from}_attn.norm.key_norm`, `${to}.attn.${isPicture ? 'norm_k' : 'norm_added_k'}`],
        [`${from}_mlp.0`, `${ff}.linear_in`],
        [`${from}_mlp.2`, `${ff}.linear_out`],
      ];
    }),
    ['single_blocks.3.linear1', 'single_transformer_blocks.3.attn.to_qkv_mlp_proj'],
    ['single_blocks.3.linear2', 'single_transformer_blocks.3.attn.to_out'],
    ['single_blocks.3.norm.query_norm', 'single_transformer_blocks.3.attn.norm_q'],
  ])('finds %s of FLUX.2, with dots and with underscores, and the way back', (original, ...paths) => {
    for (const [index, path] of paths.entries())
      expect(originalLayer(path)).toEqual({ path: original, index, count: paths.length });
    expect(diffusersLayer('flux2', original)).toEqual({ paths, isSwapped: false });
    expect(diffusersLayer('flux2', original.replaceAll('.', '_')).paths).toEqual(paths);
  });

  it.each<[original: string, ...paths: string[]]>([
    ['x_embedder', 'all_x_embedder.2-1'],
    ['final_layer.linear', 'all_final_layer.2-1.linear'],
    ['final_layer.adaLN_modulation.1', 'all_final_layer.2-1.adaLN_modulation.1'],
    ...['layers', 'noise_refiner', 'context_refiner'].flatMap((blocks): [string, ...string[]][] => {
      const attention = `${blocks}.10.attention`;
      return [
        [`${attention}.qkv`, ...['to_q', 'to_k', 'to_v'].map((name) => `${attention}.${name}`)],
        [`${attention}.out`, `${attention}.to_out.0`],
        [`${attention}.q_norm`, `${attention}.norm_q`],
        [`${attention}.k_norm`, `${attention}.norm_k`],
      ];
    }),
  ])('finds %s of Z-Image, with dots and with underscores, and the way back', (original, ...paths) => {
    for (const [index, path] of paths.entries())
      expect(originalLayer(path)).toEqual({ path: original, index, count: paths.length });
    expect(diffusersLayer('z-image', original)).toEqual({ paths, isSwapped: false });
    expect(diffusersLayer('z-image', original.replaceAll('.', '_')).paths).toEqual(paths);
  });

  it("swaps the shift and the scale of FLUX.2's last layer, and nothing else", () => {
    const swapped = { paths: ['norm_out.linear'], isSwapped: true };
    for (const path of ['final_layer.adaLN_modulation.1', 'final_layer_adaLN_modulation_1'])
      expect(diffusersLayer('flux2', path)).toEqual(swapped);
  });

  it.each(['layers.0.attention.to_q', 'cap_embedder.1', 'layers.0.adaLN_modulation.0', 'layers.0.attention.qkv.more'])(
    'returns %s as it is',
    (path) => expect(diffusersLayer('z-image', path)).toEqual({ paths: [path], isSwapped: false }),
  );
});
