"""Records what `npm run bench -- --gpu` makes models of: configurations and the shapes of weights, none of their values.

`record.py` writes models.json.gz beside it, with diffusers and transformers. Each model is there at full size, and tiny, for a dry run.
"""

import gzip
import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, AutoencoderKLFlux2, Flux2Transformer2DModel, UNet2DConditionModel, ZImageTransformer2DModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, Qwen3Config, Qwen3ForCausalLM

WORDS = {"clip": 776, "qwen": 8282}  # Of the tokenizers in test/golden.


def part(cls, **config):
    of = getattr(cls, "config_class", None)
    with torch.device("meta"): model = cls(of(**config)) if of else cls(**config)
    named = {"model_type": of.model_type} if of else {"_class_name": cls.__name__}
    shapes = {name: list(value.shape) for name, value in model.state_dict().items() if value.is_floating_point()}
    return {"config": named | config, "shapes": shapes}


def clip(cls, width, layers, act, projection):
    end = WORDS["clip"] - 1
    heads = max(1, width // 64)
    return part(cls, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=heads, hidden_act=act, projection_dim=projection, vocab_size=end + 1, bos_token_id=end - 1, eos_token_id=end, pad_token_id=end)


def qwen(width, inner, layers, heads, keys, head, words):
    return part(Qwen3ForCausalLM, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=keys, head_dim=head, vocab_size=words, hidden_act="silu", tie_word_embeddings=True, rope_parameters={"rope_theta": 1e6, "rope_type": "default"})


def vae(channels, cls=AutoencoderKL, **config):
    sides = {f"{side}_block_types": [f"{side.capitalize()}{'En' if side == 'down' else 'De'}coderBlock2D"] * len(channels) for side in ("down", "up")}
    return part(cls, block_out_channels=channels, layers_per_block=2 if channels[0] > 32 else 1, **sides, **config)


def sd15(levels, context, layers, vae_levels, **more):
    unet = part(UNet2DConditionModel, sample_size=64, block_out_channels=levels, cross_attention_dim=context, attention_head_dim=8, **more)
    return {"unet": unet, "text_encoder": clip(CLIPTextModel, context, layers, "quick_gelu", context), "vae": vae(vae_levels, scaling_factor=0.18215, **more)}


def sdxl(levels, depths, heads, contexts, layers, vae_levels, **more):
    first, second = contexts
    blocks = {"down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"], "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"]}
    added = {"addition_embed_type": "text_time", "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": second + 6 * 256}
    unet = part(UNet2DConditionModel, sample_size=128, block_out_channels=levels, cross_attention_dim=first + second, transformer_layers_per_block=depths, attention_head_dim=heads, use_linear_projection=True, **blocks, **added, **more)
    texts = {"text_encoder": clip(CLIPTextModel, first, layers[0], "quick_gelu", first), "text_encoder_2": clip(CLIPTextModelWithProjection, second, layers[1], "gelu", second)}
    return {"unet": unet, **texts, "vae": vae(vae_levels, scaling_factor=0.13025, **more)}


def klein(heads, head, blocks, encoder, vae_levels, **more):
    context = 3 * encoder["config"]["hidden_size"]
    transformer = part(Flux2Transformer2DModel, num_layers=blocks[0], num_single_layers=blocks[1], num_attention_heads=heads, attention_head_dim=head, joint_attention_dim=context, guidance_embeds=False, axes_dims_rope=[head // 4] * 4)
    return {"transformer": transformer, "text_encoder": encoder, "vae": vae(vae_levels, AutoencoderKLFlux2, **more)}


def z_image(dim, heads, layers, encoder, vae_levels, **more):
    head = dim // heads
    transformer = part(ZImageTransformer2DModel, dim=dim, n_heads=heads, n_kv_heads=heads, n_layers=layers, cap_feat_dim=encoder["config"]["hidden_size"], axes_dims=[head // 4, head * 3 // 8, head * 3 // 8])
    return {"transformer": transformer, "text_encoder": encoder, "vae": vae(vae_levels, latent_channels=16, scaling_factor=0.3611, shift_factor=0.1159, use_quant_conv=False, use_post_quant_conv=False, **more)}


def main():
    sd_vae, tiny_vae, few = [128, 256, 512, 512], [8, 8, 8, 8], {"norm_num_groups": 8}
    qwen3_4b = qwen(2560, 9728, 36, 32, 8, 128, 151_936)
    tiny_qwen = qwen(32, 64, 28, 4, 2, 16, WORDS["qwen"])
    models = {
        "full": {
            "sd15": sd15([320, 640, 1280, 1280], 768, 12, sd_vae),
            "sdxl": sdxl([320, 640, 1280], [1, 2, 10], [5, 10, 20], [768, 1280], [12, 32], sd_vae),
            "klein": klein(24, 128, [5, 20], qwen3_4b, sd_vae),
            "z-image": z_image(3840, 30, 30, qwen3_4b, sd_vae),
        },
        "tiny": {
            "sd15": sd15([8, 16, 16, 16], 32, 2, tiny_vae, **few),
            "sdxl": sdxl([8, 16, 16], [1, 1, 2], [1, 2, 2], [32, 32], [2, 2], tiny_vae, **few),
            "klein": klein(2, 32, [1, 1], tiny_qwen, tiny_vae, **few),
            "z-image": z_image(256, 4, 2, tiny_qwen, tiny_vae, **few),
        },
    }
    Path(__file__).with_name("models.json.gz").write_bytes(gzip.compress(json.dumps(models).encode(), mtime=0))


if __name__ == "__main__":
    main()
