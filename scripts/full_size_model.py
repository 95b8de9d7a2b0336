"""Makes a model of Stable Diffusion 1.5 or XL at full size with random weights, to measure time and memory with.

python scripts/full_size_model.py FOLDER --family sd15|sdxl [--half] [--single-file]

Its pictures show nothing. The layout is diffusers', as on the hub: --half makes the files in float16 that a `variant`
has. --single-file writes FOLDER/model.safetensors in the original names instead. In float32 that is 4.3 GB for 1.5 and
13.9 GB for XL. Needs torch, diffusers and transformers, and as much memory as the U-Net, or the single file.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import diffusers
import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parent / "goldens"))
from families import CLIP, EULER, PNDM, checkpoint, hugging, scheduler

# The values of the models' own config.json files, where they are not the classes' defaults.
VAE = {
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}
CLIP_L = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "projection_dim": 768,
    "hidden_act": "quick_gelu",
    "bos_token_id": 49406,
    "eos_token_id": 49407,
    "pad_token_id": 1,
}
CLIP_G = {
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_attention_heads": 20,
    "projection_dim": 1280,
    "hidden_act": "gelu",
    "bos_token_id": 49406,
    "eos_token_id": 49407,
    "pad_token_id": 1,
}
SD15 = {
    "unet": ("UNet2DConditionModel", {"sample_size": 64, "cross_attention_dim": 768}),
    "vae": ("AutoencoderKL", {**VAE, "sample_size": 512, "scaling_factor": 0.18215}),
    "text_encoder": ("CLIPTextModel", CLIP_L),
}
SDXL_UNET = {
    "sample_size": 128,
    "cross_attention_dim": 2048,
    "attention_head_dim": (5, 10, 20),
    "block_out_channels": (320, 640, 1280),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2, 10),
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
SDXL = {
    "unet": ("UNet2DConditionModel", SDXL_UNET),
    "vae": ("AutoencoderKL", {**VAE, "sample_size": 1024, "scaling_factor": 0.13025}),
    "text_encoder": ("CLIPTextModel", CLIP_L),
    "text_encoder_2": ("CLIPTextModelWithProjection", CLIP_G),
}
FAMILIES = {
    "sd15": (SD15, PNDM, "StableDiffusionPipeline", {"tokenizer": "<|endoftext|>"}),
    "sdxl": (SDXL, EULER, "StableDiffusionXLPipeline", {"tokenizer": "<|endoftext|>", "tokenizer_2": "!"}),
}


@torch.no_grad()
def made(kind, config, dtype):
    """A module whose activations keep their size, so that they stay finite in half precision."""
    with torch.device("meta"):
        if kind.startswith("CLIP"):
            module = getattr(transformers, kind)(transformers.CLIPTextConfig(**config))
        else:
            module = getattr(diffusers, kind)(**config)
    module = module.to(dtype).to_empty(device="cpu")
    for name, p in module.named_parameters():
        if p.ndim == 1:
            p.fill_(float("norm" in name and name.endswith("weight")))
        else:
            p.normal_(0, 0.02 if "embedding.weight" in name else p[0].numel() ** -0.5)
    return module


def write_part(folder, module, variant):
    is_text = isinstance(module, transformers.PreTrainedModel)
    module.config.save_pretrained(folder) if is_text else module.save_config(folder)
    tensors = hugging_names(module) if is_text else module.state_dict()
    save_file(tensors, folder / f"{'model' if is_text else 'diffusion_pytorch_model'}{variant}.safetensors", {"format": "pt"})


def hugging_names(module):
    projection = {k: v for k, v in module.state_dict().items() if k.startswith("text_projection")}
    return {k: v for k, v in hugging(module, "").items() if "text_projection" not in k} | projection


def main(folder, family, half, single_file):
    torch.manual_seed(0)
    parts, kind, pipeline, tokenizers = FAMILIES[family]
    dtype, variant = (torch.float16, ".fp16") if half else (torch.float32, "")
    folder.mkdir(parents=True)
    if single_file:
        modules = {name: made(*part, dtype) for name, part in parts.items()}
        tensors = {k: v.contiguous() for k, v in checkpoint(SimpleNamespace(**modules)).items()}
        return save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    for name, part in parts.items():
        write_part(folder / name, made(*part, dtype), variant)
    for name, pad in tokenizers.items():
        shutil.copytree(CLIP, folder / name, ignore=shutil.ignore_patterns("LICENSE"))
        config = {"model_max_length": 77, "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "pad_token": pad}
        (folder / name / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    scheduler(kind).save_pretrained(folder / "scheduler")
    owner = lambda one: "transformers" if one.startswith("CLIP") else "diffusers"
    classes = {name: part[0] for name, part in parts.items()} | {name: "CLIPTokenizer" for name in tokenizers} | {"scheduler": kind[0]}
    index = {"_class_name": pipeline, **{name: [owner(one), one] for name, one in classes.items()}}
    (folder / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--family", choices=FAMILIES, default="sd15")
    parser.add_argument("--half", action="store_true", help="float16 instead of float32")
    parser.add_argument("--single-file", action="store_true", help="one file in the original names")
    options = parser.parse_args()
    main(options.folder, options.family, options.half, options.single_file)
