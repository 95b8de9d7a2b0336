import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { convertModel } from '../libs/model-store/src/convert-model';
import { unpackFolder } from '../test/support/families';
import { Shapes, vae, vaeConfig, writePart } from './full-size-model';

/** Widths of FLUX.2 [klein] 4B, and of Qwen3 4B, of which it reads the first 27 layers. */
const [width, head, latents] = [3072, 128, 32];
const blocks = { transformer_blocks: 5, single_transformer_blocks: 20 };
const text = { width: 2560, inner: 9728, heads: 32, ofKeys: 8, layers: 28, words: 151_936 };

/** Of a picture of 512 x 512 and of a text, as the transformer takes them. */
export const sampleShape: [number, number, number] = [4 * latents, 32, 32];
export const textShape = [512, 3 * text.width];

const configs = {
  transformer: {
    ...{ _class_name: 'Flux2Transformer2DModel', num_layers: 5, num_single_layers: 20, guidance_embeds: false },
    ...{ num_attention_heads: width / head, joint_attention_dim: textShape[1] },
  },
  text_encoder: {
    ...{ model_type: 'qwen3', hidden_act: 'silu', hidden_size: text.width, num_hidden_layers: text.layers },
    ...{ num_attention_heads: text.heads, num_key_value_heads: text.ofKeys, head_dim: head },
    ...{ vocab_size: text.words, intermediate_size: text.inner, rope_parameters: { rope_theta: 1e6 } },
  },
  vae: { ...vaeConfig, _class_name: 'AutoencoderKLFlux2', latent_channels: latents },
};

/** A part of diffusers' tiny model, whose configurations do not depend on widths. */
const tinyModels = 'test/golden/models';

function transformer(): Shapes {
  const shapes = new Shapes();
  const inner = 3 * width;
  const norms = (path: string, ...names: string[]): void => {
    for (const name of names) shapes.all.set(`${path}.${name}.weight`, [head]);
  };
  shapes.matrix('x_embedder', width, 4 * latents);
  shapes.matrix('context_embedder', width, textShape[1]);
  shapes.matrix('time_guidance_embed.timestep_embedder.linear_1', width, 256);
  shapes.matrix('time_guidance_embed.timestep_embedder.linear_2', width, width);
  for (const stream of ['img', 'txt']) shapes.matrix(`double_stream_modulation_${stream}.linear`, 6 * width, width);
  shapes.matrix('single_stream_modulation.linear', 3 * width, width);
  for (let i = 0; i < blocks.transformer_blocks; i++) {
    const path = `transformer_blocks.${i}`;
    const projections = ['to_q', 'to_k', 'to_v', 'to_out.0', 'add_q_proj', 'add_k_proj', 'add_v_proj', 'to_add_out'];
    for (const name of projections) shapes.matrix(`${path}.attn.${name}`, width, width);
    norms(`${path}.attn`, 'norm_q', 'norm_k', 'norm_added_q', 'norm_added_k');
    for (const name of ['ff', 'ff_context']) {
      shapes.matrix(`${path}.${name}.linear_in`, 2 * inner, width);
      shapes.matrix(`${path}.${name}.linear_out`, width, inner);
    }
  }
  for (let i = 0; i < blocks.single_transformer_blocks; i++) {
    const path = `single_transformer_blocks.${i}.attn`;
    shapes.matrix(`${path}.to_qkv_mlp_proj`, 3 * width + 2 * inner, width);
    shapes.matrix(`${path}.to_out`, width, width + inner);
    norms(path, 'norm_q', 'norm_k');
  }
  shapes.matrix('norm_out.linear', 2 * width, width);
  shapes.matrix('proj_out', 4 * latents, width);
  return shapes;
}

function textEncoder(): Shapes {
  const shapes = new Shapes();
  const { width: hidden, inner, heads, ofKeys, layers, words } = text;
  shapes.matrix('model.embed_tokens', words, hidden);
  for (let i = 0; i < layers; i++) {
    const path = `model.layers.${i}`;
    shapes.matrix(`${path}.self_attn.q_proj`, heads * head, hidden);
    for (const name of ['k_proj', 'v_proj']) shapes.matrix(`${path}.self_attn.${name}`, ofKeys * head, hidden);
    shapes.matrix(`${path}.self_attn.o_proj`, hidden, heads * head);
    for (const name of ['q_norm', 'k_norm']) shapes.all.set(`${path}.self_attn.${name}.weight`, [head]);
    for (const name of ['gate_proj', 'up_proj']) shapes.matrix(`${path}.mlp.${name}`, inner, hidden);
    shapes.matrix(`${path}.mlp.down_proj`, hidden, inner);
    for (const name of ['input_layernorm', 'post_attention_layernorm'])
      shapes.all.set(`${path}.${name}.weight`, [hidden]);
  }
  return shapes;
}

function autoencoder(): Shapes {
  const shapes = vae(latents);
  for (const name of ['running_mean', 'running_var']) shapes.all.set(`bn.${name}`, [4 * latents]);
  return shapes;
}

/**
 * Makes a folder of FLUX.2 [klein] 4B at full size with random weights in bfloat16, 14 GB; its text encoder ends after
 * the layers that are used.
 */
async function makeKlein(folder: string): Promise<void> {
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  await unpackFolder(join(tinyModels, 'qwen3', 'tokenizer'), join(unfinished, 'tokenizer'));
  for (const name of ['scheduler', 'model_index.json'])
    cpSync(join(tinyModels, 'flux2-klein', name), join(unfinished, name), { recursive: true });
  const shapes = { transformer: transformer(), text_encoder: textEncoder(), vae: autoencoder() };
  for (const part of ['transformer', 'text_encoder', 'vae'] as const) {
    mkdirSync(join(unfinished, part));
    writeFileSync(join(unfinished, part, 'config.json'), JSON.stringify(configs[part]));
    const stem = part === 'text_encoder' ? 'model' : 'diffusion_pytorch_model';
    await writePart(join(unfinished, part, `${stem}.safetensors`), shapes[part], 'BF16');
  }
  renameSync(unfinished, folder);
}

/** The model in bfloat16 and in int8, each made if it is not there. */
export async function fullSizeKlein(folder: string): Promise<{ bfloat16: string; int8: string }> {
  const int8 = `${folder}-int8`;
  if (!existsSync(folder)) await makeKlein(folder);
  if (!existsSync(int8)) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    const unfinished = `${int8}.unfinished`;
    await convertModel(
      folder,
      unfinished,
      files.map((file) => file.slice(join(folder, '/').length)),
      'int8',
      {},
    );
    renameSync(unfinished, int8);
  }
  return { bfloat16: folder, int8 };
}
