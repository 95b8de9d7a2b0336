"""Records which rows of which tensors of an original file diffusers makes a model's tensors of, for the tiny models of test/golden/models.

python scripts/goldens/original_names.py test/golden/data/original-names.json

{"flux2": {"norm_out.linear.weight": [["final_layer.adaLN_modulation.1.weight", 3, 6], ["final_layer.adaLN_modulation.1.weight", 0, 3]]}}: rows are counted in sixths.
"""

import json
import sys
from pathlib import Path

import torch
from diffusers.loaders.single_file_utils import convert_flux2_transformer_checkpoint_to_diffusers, convert_ldm_vae_checkpoint, convert_z_image_transformer_checkpoint_to_diffusers

SIDES = [f"double_blocks.{i}.{side}_{layer}" for i in range(2) for side in ("img", "txt") for layer in ("attn.qkv.weight", "attn.proj.weight", "attn.norm.query_norm.scale", "attn.norm.key_norm.scale", "mlp.0.weight", "mlp.2.weight")]
SINGLE = [f"single_blocks.{i}.{layer}" for i in range(2) for layer in ("linear1.weight", "linear2.weight", "norm.query_norm.scale", "norm.key_norm.scale")]
FLUX2 = ["img_in.weight", "txt_in.weight", "time_in.in_layer.weight", "time_in.out_layer.weight", *(f"{name}.lin.weight" for name in ("double_stream_modulation_img", "double_stream_modulation_txt", "single_stream_modulation")),
         "final_layer.linear.weight", "final_layer.adaLN_modulation.1.weight", *SIDES, *SINGLE]
BLOCK = ("attention.qkv.weight", "attention.out.weight", "attention.q_norm.weight", "attention.k_norm.weight", "attention_norm1.weight", "attention_norm2.weight", "ffn_norm1.weight", "ffn_norm2.weight", "feed_forward.w1.weight", "feed_forward.w2.weight",
         "feed_forward.w3.weight")
MODULATION = ("adaLN_modulation.0.weight", "adaLN_modulation.0.bias")
Z_IMAGE = ["x_embedder.weight", "x_embedder.bias", "final_layer.linear.weight", "final_layer.linear.bias", "final_layer.adaLN_modulation.1.weight", "final_layer.adaLN_modulation.1.bias", "x_pad_token", "cap_pad_token", "cap_embedder.0.weight", "cap_embedder.1.weight",
           "cap_embedder.1.bias", "t_embedder.mlp.0.weight", "t_embedder.mlp.0.bias", "t_embedder.mlp.2.weight", "t_embedder.mlp.2.bias", *(f"{at}.{layer}" for at in ("layers.0", "layers.1", "noise_refiner.0") for layer in (*BLOCK, *MODULATION)),
           *(f"context_refiner.0.{layer}" for layer in BLOCK)]


def parameters(*layers):
    return [f"{layer}.{name}" for layer in layers for name in ("weight", "bias")]


def resnets(at, shortcuts):
    return parameters(*(f"{at}.{layer}" for layer in ("norm1", "conv1", "norm2", "conv2")), *([f"{at}.nin_shortcut"] if shortcuts else []))


def autoencoder():
    """Of four levels with 8, 8, 8 and 16 channels and a layer each, as in transformer_models.py; a decoder has one more."""
    middle = lambda side: [*resnets(f"{side}.mid.block_1", False), *resnets(f"{side}.mid.block_2", False), *parameters(*(f"{side}.mid.attn_1.{layer}" for layer in ("norm", "q", "k", "v", "proj_out")))]
    names = [name for side in ("encoder", "decoder") for name in (*parameters(f"{side}.conv_in", f"{side}.norm_out", f"{side}.conv_out"), *middle(side))]
    for level in range(4):
        names += resnets(f"encoder.down.{level}.block.0", level == 3) + (parameters(f"encoder.down.{level}.downsample.conv") if level < 3 else [])
        names += [name for layer in range(2) for name in resnets(f"decoder.up.{level}.block.{layer}", level == 2 and layer == 0)] + (parameters(f"decoder.up.{level}.upsample.conv") if level > 0 else [])
    return names


def recorded(names, convert):
    rows = {name: torch.arange(6.0).view(6, 1, 1, 1) + 6 * i if name.startswith(("encoder.", "decoder.")) else torch.arange(6.0).view(6, 1) + 6 * i for i, name in enumerate(names)}
    found = {}
    for name, tensor in convert(rows).items():
        ranges = []
        for row in tensor.flatten().int().tolist():
            source, at = names[row // 6], row % 6
            if ranges and ranges[-1][0] == source and ranges[-1][2] == at: ranges[-1][2] += 1
            else: ranges.append([source, at, at + 1])
        found[name] = ranges
    return found


def main(target):
    levels = {"down_block_types": [""] * 4, "up_block_types": [""] * 4}
    families = {"flux2": recorded(FLUX2, convert_flux2_transformer_checkpoint_to_diffusers), "z-image": recorded(Z_IMAGE, convert_z_image_transformer_checkpoint_to_diffusers), "vae": recorded(autoencoder(), lambda rows: convert_ldm_vae_checkpoint(rows, levels))}
    Path(target).write_text(json.dumps(families, indent=0) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
