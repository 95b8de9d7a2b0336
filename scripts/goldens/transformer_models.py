"""Makes the tiny models of test/golden/models that have a transformer: ernie-image, flux2-klein, flux2-klein-base, z-image,
z-image-turbo, and qwen3, which the last four share.

python scripts/goldens/transformer_models.py folder/of/Qwen3s/tokenizer folder/of/Mistral-Nemos/tokenizer test/golden/models

Weights are random, of one magnitude in each tensor (a power of two, so bfloat16 holds them exactly) and of either sign,
because such a file takes a tenth of its size when compressed. README.md beside the models has the layout.
"""

import json
import math
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from diffusers import AutoencoderKL, AutoencoderKLFlux2, ErnieImagePipeline, ErnieImageTransformer2DModel, FlowMatchEulerDiscreteScheduler, Flux2KleinPipeline, Flux2Transformer2DModel, ZImagePipeline, ZImageTransformer2DModel
from families import generator, put
from transformers import AutoTokenizer, Mistral3Config, Mistral3Model, Qwen3Config, Qwen3ForCausalLM

MERGES = 8000
WIDTH = 32
NAMES = ("flux2-klein", "flux2-klein-base", "z-image", "z-image-turbo")
ERNIE = "ernie-image"


@torch.no_grad()
def randomise(module, seed):
    """Each layer keeps the size of what goes in; vectors that are called weights are those of norms."""
    draw = generator(seed); sign = lambda shape: torch.randint(0, 2, shape, generator=draw) * 2.0 - 1
    for name, p in module.named_parameters():
        if p.ndim == 1: p.copy_(1 + sign(p.shape) / 8 if name.endswith("weight") else sign(p.shape) / 16)
        else: p.copy_(sign(p.shape) * (1 if "embed_tokens" in name else 2.0 ** -round(math.log2(p[0].numel()) / 2)))
    for name, b in module.named_buffers():
        if name.endswith("running_mean"): b.copy_(sign(b.shape) / 4)
        if name.endswith("running_var"): b.copy_(1 + sign(b.shape) / 4)
    return module.eval()


def cut_tokenizer(folder):
    """Qwen3's tokenizer with the first of its merges; added tokens follow them, in their order."""
    folder = Path(folder); whole = json.loads((folder / "tokenizer.json").read_text()); told = json.loads((folder / "tokenizer_config.json").read_text())
    model = whole["model"]; count = 256 + MERGES; first = len(model["vocab"])
    model["merges"] = model["merges"][:MERGES]; model["vocab"] = {token: i for token, i in model["vocab"].items() if i < count}; assert len(model["vocab"]) == count
    for token in whole["added_tokens"]: token["id"] += count - first
    told["added_tokens_decoder"] = {str(int(i) + count - first): token for i, token in told["added_tokens_decoder"].items()}
    return {"tokenizer.json": whole, "tokenizer_config.json": told}, count + len(whole["added_tokens"])


def cut_mistral_tokenizer(folder, count=3256):
    """Mistral Nemo's, which is of the kind of Ministral 3's, with so many of its tokens: special ones, bytes, and what the first merges make. The name of its class, and of what pads, are those of ERNIE-Image's own."""
    whole = json.loads((Path(folder) / "tokenizer.json").read_text()); model = whole["model"]
    model["vocab"] = {token: i for token, i in model["vocab"].items() if i < count}; model["merges"] = [m for m in model["merges"] if all(t in model["vocab"] for t in (m.replace(" ", ""), *m.split(" ")))]
    told = {"add_prefix_space": None, "backend": "tokenizers", "bos_token": "<s>", "clean_up_tokenization_spaces": False, "eos_token": "</s>", "is_local": True, "legacy": True, "model_max_length": 2048, "pad_token": "<pad>", "tokenizer_class": "TokenizersBackend", "unk_token": "<unk>"}
    return {"tokenizer.json": whole, "tokenizer_config.json": told}, count


def mistral3(vocabulary):
    """With eyes, as ERNIE-Image's text encoder has them, of which nothing is used."""
    rope = {"rope_type": "yarn", "type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
    text = {"model_type": "mistral", "vocab_size": vocabulary, "hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5, "sliding_window": None, "max_position_embeddings": 262144, "rope_parameters": rope}
    vision = {"model_type": "pixtral", "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 6, "num_attention_heads": 2, "head_dim": 8, "image_size": 28, "patch_size": 14}
    return randomise(Mistral3Model(Mistral3Config(text_config=text, vision_config=vision)), 6)


def ernie_image(text_encoder, tokenizer):
    transformer = randomise(ErnieImageTransformer2DModel(hidden_size=128, num_attention_heads=4, num_layers=3, ffn_hidden_size=192, text_in_dim=WIDTH, rope_axes_dim=(8, 12, 12)), 7)
    vae = randomise(AutoencoderKLFlux2(latent_channels=32, **BLOCKS), 3)
    return ErnieImagePipeline(transformer, vae, text_encoder, tokenizer, FlowMatchEulerDiscreteScheduler(shift=4.0))


def qwen3(vocabulary, tokenizer):
    """28 layers, as FLUX.2 [klein] takes those before the layers 9, 18 and 27."""
    token = tokenizer.convert_tokens_to_ids
    return randomise(Qwen3ForCausalLM(Qwen3Config(vocab_size=vocabulary, hidden_size=WIDTH, intermediate_size=64, num_hidden_layers=28, num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=40960, rms_norm_eps=1e-6,
                                                  rope_parameters={"rope_type": "default", "rope_theta": 1e6}, tie_word_embeddings=True, bos_token_id=token("<|endoftext|>"), eos_token_id=token("<|im_end|>"))), 1)


BLOCKS = {"block_out_channels": (8, 8, 8, 16), "layers_per_block": 1, "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4, "norm_num_groups": 4, "sample_size": 64}


def klein(text_encoder, tokenizer, is_distilled):
    transformer = randomise(Flux2Transformer2DModel(num_layers=2, num_single_layers=2, attention_head_dim=32, num_attention_heads=4, joint_attention_dim=3 * WIDTH, axes_dims_rope=(8, 8, 8, 8), guidance_embeds=False), 2)
    vae = randomise(AutoencoderKLFlux2(latent_channels=32, **BLOCKS), 3)
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True)
    return Flux2KleinPipeline(scheduler, vae, text_encoder, tokenizer, transformer, is_distilled=is_distilled)


def z_image(text_encoder, tokenizer, shift):
    transformer = randomise(ZImageTransformer2DModel(dim=256, n_layers=2, n_refiner_layers=1, n_heads=4, n_kv_heads=4, cap_feat_dim=WIDTH, axes_dims=[16, 24, 24]), 4)
    vae = randomise(AutoencoderKL(latent_channels=16, use_quant_conv=False, use_post_quant_conv=False, scaling_factor=0.3611, shift_factor=0.1159, **BLOCKS), 5)
    return ZImagePipeline(FlowMatchEulerDiscreteScheduler(shift=shift), vae, text_encoder, tokenizer, transformer)


def layers(out, name):
    """The folders of which a model is made, one over the other."""
    return [out / name] if name == ERNIE else [out / "qwen3", *(out / base for base in NAMES if name.startswith(base))]


def write(pipe, out, name):
    """What pipe.save_pretrained writes, except the tokenizer and what the layers below have."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder); pipe.to(torch.bfloat16); pipe.save_pretrained(folder / "all")
        for file in sorted((folder / "all").rglob("*")):
            where = file.relative_to(folder / "all"); part = where.parts[0]
            if file.is_dir() or part == "tokenizer": continue
            put(folder / "put" / where, file.read_bytes())
        for file in sorted(f for f in (folder / "put").rglob("*") if f.is_file()):
            where = file.relative_to(folder / "put"); data = file.read_bytes()
            if any((lower / where).exists() and (lower / where).read_bytes() == data for lower in layers(out, name)[:-1]): continue
            to = (out / "qwen3" if where.parts[0] == "text_encoder" and name != ERNIE else out / name) / where; to.parent.mkdir(parents=True, exist_ok=True); to.write_bytes(data)


def opened(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items(): (Path(folder) / name).write_text(json.dumps(data))
        return AutoTokenizer.from_pretrained(folder)


def main(qwen_tokenizer, mistral_tokenizer, out):
    torch.set_num_threads(1); out = Path(out)
    for name in ("qwen3", *NAMES, ERNIE): shutil.rmtree(out / name, ignore_errors=True)
    (ours, vocabulary), (others, count) = cut_tokenizer(qwen_tokenizer), cut_mistral_tokenizer(mistral_tokenizer)
    for to, files in (("qwen3", ours), (ERNIE, others)):
        for name, data in files.items(): put(out / to / "tokenizer" / name, json.dumps(data, ensure_ascii=False).encode())
    parts = qwen3(vocabulary, tokenizer := opened(ours)), tokenizer
    for name, pipe in zip(NAMES, (klein(*parts, True), klein(*parts, False), z_image(*parts, 6.0), z_image(*parts, 3.0))): write(pipe, out, name)
    write(ernie_image(mistral3(count), opened(others)), out, ERNIE)


if __name__ == "__main__":
    main(*sys.argv[1:])
